// Threads that last, and scratch memory that is reused: what every kernel needs and no algorithm should know about.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spigot {

// Calls body(context, task) for every task in [0, tasks), on up to `threads` threads, the caller among them. Tasks are
// handed out in order. A call that finds the pool busy runs alone, so any number of threads may call at once; a child
// process gets a pool of its own.
void parallel_for(int64_t tasks, int threads, void (*body)(void*, int64_t), void* context);

template <class Body>
void parallel_for(int64_t tasks, int threads, Body& body) {
    parallel_for(tasks, threads, [](void* context, int64_t task) { (*static_cast<Body*>(context))(task); }, &body);
}

// A stack of scratch memory of this thread: what is taken is given back when the object goes.
class Scratch {
public:
    Scratch();
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    // Uninitialised room for `count` values, aligned for the widest vectors.
    template <class T>
    T* take(size_t count) {
        return static_cast<T*>(bytes(count * sizeof(T)));
    }

private:
    void* bytes(size_t size);
    size_t mark_, overflow_mark_;
};

}  // namespace spigot
