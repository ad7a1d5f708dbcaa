#include "pool.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace spigot {
namespace {

inline void breathe() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

// Waits a little while actively, since work that comes at once should not pay for waking a thread; false if in vain.
template <class Condition>
bool spin(Condition condition) {
    for (int i = 0; i < 2000; ++i) {
        if (condition()) return true;
        breathe();
    }
    return false;
}

class Pool {
public:
    bool try_run(int64_t tasks, int threads, void (*body)(void*, int64_t), void* context) {
        std::unique_lock<std::mutex> busy(busy_, std::try_to_lock);
        if (!busy.owns_lock()) return false;
        const int helpers = hire(threads - 1);
        if (!helpers) return false;
        body_ = body;
        context_ = context;
        tasks_ = tasks;
        next_.store(0);
        running_.store(helpers);
        error_ = nullptr;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            ticket_.store(((ticket_.load() >> 16) + 1) << 16 | static_cast<uint64_t>(helpers));
        }
        wake_.notify_all();
        drain();
        auto finished = [this] { return running_.load() == 0; };
        if (!spin(finished)) {
            std::unique_lock<std::mutex> lock(mutex_);
            done_.wait(lock, finished);
        }
        if (error_) std::rethrow_exception(error_);
        return true;
    }

private:
    // As many threads as can be had, up to `wanted`.
    int hire(int wanted) {
        wanted = wanted < 0xffff ? wanted : 0xffff;
        try {
            while (workers_ < wanted) {
                std::thread([this, id = workers_] { work(id); }).detach();
                ++workers_;
            }
        } catch (const std::system_error&) {  // no more threads: fewer will do
        }
        return workers_ < wanted ? workers_ : wanted;
    }

    void drain() {
        try {
            for (int64_t task; (task = next_.fetch_add(1)) < tasks_;) body_(context_, task);
        } catch (...) {
            std::lock_guard<std::mutex> lock(mutex_);
            error_ = std::current_exception();
            next_.store(tasks_);
        }
    }

    // A ticket is the number of a round and how many helpers it wants, in one word: a helper that comes late to a round
    // that does not want it cannot mistake the next round for this one.
    void work(int id) {
        uint64_t seen = 0;
        auto called = [&] { return ticket_.load() != seen; };
        while (true) {
            if (!spin(called)) {
                std::unique_lock<std::mutex> lock(mutex_);
                wake_.wait(lock, called);
            }
            seen = ticket_.load();
            if (id >= static_cast<int>(seen & 0xffff)) continue;
            drain();
            if (running_.fetch_sub(1) == 1) {
                std::lock_guard<std::mutex> lock(mutex_);
                done_.notify_one();
            }
        }
    }

    std::mutex busy_, mutex_;
    std::condition_variable wake_, done_;
    int workers_ = 0;
    std::atomic<uint64_t> ticket_{0};
    std::atomic<int> running_{0};
    void (*body_)(void*, int64_t) = nullptr;
    void* context_ = nullptr;
    int64_t tasks_ = 0;
    std::atomic<int64_t> next_{0};
    std::exception_ptr error_;
};

// Never destroyed: its threads may outlive static destruction, and a forked child must not touch its parent's locks.
std::atomic<Pool*> pool{nullptr};

struct Setup {
    Setup() {
        pool.store(new Pool);
#if !defined(_WIN32)
        pthread_atfork(nullptr, nullptr, [] { pool.store(new Pool); });
#endif
    }
} setup;

constexpr size_t alignment = 64;
#if defined(SPIGOT_SANITIZE)  // every block on its own, so that who leaves his is seen
constexpr size_t keep_at_most = 0;
#else
constexpr size_t keep_at_most = size_t{64} << 20;
#endif

struct Stack {
    char* base = nullptr;
    size_t capacity = 0, used = 0;
    size_t held = 0, most = 0;  // bytes in blocks beside the stack, and the most ever in use at once
    int depth = 0;
    struct Block {
        void* block;
        size_t size;
    };
    std::vector<Block> overflow;
    ~Stack() { std::free(base); }
};

thread_local Stack stack;

size_t rounded(size_t size) { return (size + alignment - 1) / alignment * alignment; }

char* allocate(size_t size) {
    void* block = std::aligned_alloc(alignment, rounded(size));
    if (!block) throw std::bad_alloc();
    return static_cast<char*>(block);
}

}  // namespace

void parallel_for(int64_t tasks, int threads, void (*body)(void*, int64_t), void* context) {
    if (threads > tasks) threads = static_cast<int>(tasks);
    if (threads > 1 && pool.load()->try_run(tasks, threads, body, context)) return;
    for (int64_t task = 0; task < tasks; ++task) body(context, task);
}

Scratch::Scratch() : mark_(stack.used), overflow_mark_(stack.overflow.size()) { ++stack.depth; }

Scratch::~Scratch() {
    stack.used = mark_;
    while (stack.overflow.size() > overflow_mark_) {
        stack.held -= stack.overflow.back().size;
        std::free(stack.overflow.back().block);
        stack.overflow.pop_back();
    }
    if (--stack.depth > 0 || stack.most <= stack.capacity) return;
    if (stack.most <= keep_at_most) {  // next time it fits
        std::free(stack.base);
        stack.base = static_cast<char*>(std::aligned_alloc(alignment, stack.most));
        stack.capacity = stack.base ? stack.most : 0;
    }
    stack.most = 0;
}

void* Scratch::bytes(size_t size) {
    size = rounded(size ? size : 1);
    if (stack.used + stack.held + size > stack.most) stack.most = stack.used + stack.held + size;
    if (stack.used + size <= stack.capacity) {
        char* block = stack.base + stack.used;
        stack.used += size;
        return block;
    }
    char* block = allocate(size);
    stack.overflow.push_back({block, size});
    stack.held += size;
    return block;
}

}  // namespace spigot
