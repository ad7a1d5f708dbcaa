#include "pool.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace spigot {
namespace {

class Pool {
public:
    bool try_run(int64_t tasks, int threads, void (*body)(void*, int64_t), void* context) {
        std::unique_lock<std::mutex> busy(busy_, std::try_to_lock);
        if (!busy.owns_lock()) return false;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            while (static_cast<int>(workers_) < threads - 1) {
                std::thread([this, id = workers_] { work(id); }).detach();
                ++workers_;
            }
            body_ = body;
            context_ = context;
            tasks_ = tasks;
            next_.store(0);
            helpers_ = threads - 1;
            running_ = helpers_;
            error_ = nullptr;
            ++round_;
        }
        wake_.notify_all();
        drain();
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [this] { return running_ == 0; });
        if (error_) std::rethrow_exception(error_);
        return true;
    }

private:
    void drain() {
        try {
            for (int64_t task; (task = next_.fetch_add(1)) < tasks_;) body_(context_, task);
        } catch (...) {
            std::lock_guard<std::mutex> lock(mutex_);
            error_ = std::current_exception();
            next_.store(tasks_);
        }
    }

    void work(int id) {
        uint64_t seen = 0;
        std::unique_lock<std::mutex> lock(mutex_);
        while (true) {
            wake_.wait(lock, [&] { return round_ != seen; });
            seen = round_;
            if (id >= helpers_) continue;
            lock.unlock();
            drain();
            lock.lock();
            if (--running_ == 0) done_.notify_one();
        }
    }

    std::mutex busy_, mutex_;
    std::condition_variable wake_, done_;
    int workers_ = 0, helpers_ = 0, running_ = 0;
    uint64_t round_ = 0;
    void (*body_)(void*, int64_t) = nullptr;
    void* context_ = nullptr;
    int64_t tasks_ = 0;
    std::atomic<int64_t> next_{0};
    std::exception_ptr error_;
};

// Never destroyed: its threads may outlive static destruction, and a forked child must not touch its parent's locks.
std::atomic<Pool*> pool{nullptr};

Pool& current_pool() {
    static std::once_flag once;
    std::call_once(once, [] {
        pool.store(new Pool);
#if !defined(_WIN32)
        pthread_atfork(nullptr, nullptr, [] { pool.store(new Pool); });
#endif
    });
    return *pool.load();
}

constexpr size_t alignment = 64;
constexpr size_t keep_at_most = size_t{64} << 20;

struct Stack {
    char* base = nullptr;
    size_t capacity = 0, used = 0, wanted = 0;
    int depth = 0;
    std::vector<void*> overflow;
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
    if (threads > 1 && current_pool().try_run(tasks, threads, body, context)) return;
    for (int64_t task = 0; task < tasks; ++task) body(context, task);
}

Scratch::Scratch() : mark_(stack.used) { ++stack.depth; }

Scratch::~Scratch() {
    stack.used = mark_;
    if (--stack.depth > 0) return;
    for (void* block : stack.overflow) std::free(block);
    if (!stack.overflow.empty() && stack.wanted <= keep_at_most) {
        std::free(stack.base);
        stack.base = static_cast<char*>(std::aligned_alloc(alignment, stack.wanted));
        stack.capacity = stack.base ? stack.wanted : 0;
    }
    stack.overflow.clear();
    stack.wanted = 0;
}

void* Scratch::bytes(size_t size) {
    size = rounded(size ? size : 1);
    stack.wanted += size;
    if (stack.used + size <= stack.capacity) {
        char* block = stack.base + stack.used;
        stack.used += size;
        return block;
    }
    char* block = allocate(size);
    stack.overflow.push_back(block);
    return block;
}

}  // namespace spigot
