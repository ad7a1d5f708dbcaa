// Drives every kernel over adversarial input, without Python around it, for builds under sanitizers: `make sanitize`.
//
// What the kernels answer is tested elsewhere; here it matters that they touch no memory but their own, do nothing that
// C++ leaves undefined, and do not race. Inputs and outputs lie in blocks of their exact size.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "kernels.hpp"

namespace {

using namespace spigot;

template <class T>
struct Case {
    std::mt19937_64 dice;
    int threads;

    double chance() { return std::uniform_real_distribution<double>(0, 1)(dice); }
    int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(dice); }

    // Plain numbers, equal ones, giants, denormal ones, infinities, NaN: a mixture of its own for every tensor.
    std::vector<T> values(int64_t count) {
        constexpr T infinity = std::numeric_limits<T>::infinity(), most = std::numeric_limits<T>::max();
        const T odd[] = {0, 1, -1, most, -most, -infinity, infinity, std::numeric_limits<T>::denorm_min(), T(1e30), T(-1e30)};
        const int kind = static_cast<int>(pick(0, 5));
        const T scale = std::pow(T(10), T(pick(-3, 6)));
        std::normal_distribution<double> normal;
        std::vector<T> made(count);
        for (T& value : made) {
            value = static_cast<T>(normal(dice)) * scale;
            if (kind == 1) value = std::round(value / scale);
            if (kind == 2 && chance() < 0.3) value = -infinity;
            if (kind >= 3 && chance() < (kind == 5 ? 1.0 : 0.2)) value = odd[pick(0, 9)];
        }
        if (kind == 4 && count && chance() < 0.3) made[pick(0, count - 1)] = std::numeric_limits<T>::quiet_NaN();
        return made;
    }
    std::vector<uint8_t> mask(int64_t count) {
        const double share = chance() < 0.4 ? 1 : chance();
        std::vector<uint8_t> made(count);
        for (uint8_t& value : made) value = chance() < share;
        return made;
    }
    std::vector<int64_t> seeds(int64_t count) {
        std::vector<int64_t> made(count);
        for (int64_t& value : made) value = static_cast<int64_t>(dice());
        return made;
    }
    std::vector<T> room(int64_t count) { return std::vector<T>(count); }

    void trees() {
        const int64_t batch = pick(1, 9), n = pick(1, chance() < 0.1 ? 70 : 20), size = batch * n * n, samples = pick(1, 3);
        const auto& of = kernels().trees.template of<T>();
        const auto& draws = kernels().draws.template of<T>();
        const auto scores = values(size), start = values(size);
        const auto exists = mask(size);
        const auto some = seeds(batch * samples);
        const ArcBatch<T> arcs{scores.data(), exists.data(), batch, n};
        auto z = room(size), sums = room(batch), many = room(size * samples);
        std::vector<double> gap(batch);
        auto emit = [](void*, int64_t, int, int, const double*, const int32_t*) {};
        for (int kind = 0; kind < 4; ++kind) {
            const TreeKind tree{(kind & 1) != 0, (kind & 2) != 0};
            { FaultBox faults; of.argmax(arcs, tree, z.data(), threads, faults); }
            { FaultBox faults; of.sums(arcs, tree, sums.data(), z.data(), threads, faults); }
            { FaultBox faults; of.sums(arcs, tree, sums.data(), nullptr, threads, faults); }
            { FaultBox faults; of.hessian(arcs, tree, start.data(), z.data(), threads, faults); }
            { FaultBox faults; draws.sample_trees(arcs, tree, some.data(), samples, many.data(), threads, faults); }
            if (n > 12) continue;
            FaultBox faults;
            of.project_hull(arcs, nullptr, tree, 1e-9, 200, z.data(), gap.data(), chance() < 0.5 ? +emit : nullptr,
                            nullptr, threads, faults);
        }
    }
    void graphs() {
        const int64_t batch = pick(1, 4), n = pick(1, 12), labels = pick(0, 6), width = 1 + labels, size = batch * n * n * width;
        const auto scores = values(size), grad = values(size);
        const auto exists = mask(size), roles = mask(labels + 1);
        auto z = room(size), best = room(batch * n * n);
        FaultBox faults;
        kernels().graphs.template of<T>().argmax(scores.data(), exists.data(), batch, n, width, roles.data(), z.data(),
                                                 threads, faults);
        const auto& blocks = kernels().blocks.template of<T>();
        for (const bool sequential : {false, true}) {
            FaultBox more;
            blocks.project_arc_labels(scores.data(), exists.data(), batch, n, width, sequential, z.data(), threads, more);
            std::vector<double> scale(batch, 0.5);
            for (const T* given : {static_cast<const T*>(nullptr), scores.data()}) {
                FaultBox third;
                const PullInput<T> input{z.data(), grad.data(), exists.data(), 0.5, given, given ? scale.data() : nullptr, sequential};
                auto to = room(size);
                blocks.pull_arc_labels(input, batch, n, width, sequential, to.data(), threads, third);
            }
        }
        std::vector<int32_t> which(batch * n * n);
        std::vector<uint8_t> arcs(batch * n * n);
        const auto& draws = kernels().draws.template of<T>();
        { FaultBox more; draws.best_labels(scores.data(), exists.data(), batch, n, width, best.data(), which.data(), threads, more); }
        { FaultBox more; draws.label_sums(scores.data(), exists.data(), batch, n, width, best.data(), z.data(), arcs.data(), threads, more); }
    }
    void blocks() {
        const int64_t batch = pick(1, 9), n = pick(1, 40), size = batch * n * n;
        const auto point = values(size), grad = values(size);
        const auto exists = mask(size);
        auto to = room(size), z = room(size);
        const auto& of = kernels().blocks.template of<T>();
        { FaultBox faults; of.project_rows(point.data(), exists.data(), batch * n, n, z.data(), threads, faults); }
        { FaultBox faults; of.project_heads(point.data(), exists.data(), batch, n, z.data(), threads, faults); }
        std::vector<double> scale(batch * n, 0.25);
        for (const T* given : {static_cast<const T*>(nullptr), point.data()}) {
            const PullInput<T> input{z.data(), grad.data(), exists.data(), 2.0, given, given ? scale.data() : nullptr, chance() < 0.5};
            { FaultBox faults; of.pull_rows(input, batch * n, n, to.data(), threads, faults); }
            { FaultBox faults; of.pull_heads(input, batch, n, to.data(), threads, faults); }
        }
    }
    void chains() {
        const int64_t batch = pick(1, 5), n = pick(1, 12), k = pick(1, 10), size = batch * n * (1 + k) * k, count = pick(1, 5);
        const auto scores = values(size), grad = values(size);
        const auto exists = mask(size);
        const auto some = seeds(batch * count);
        const ChainBatch<T> chains{scores.data(), exists.data(), batch, n, k};
        const auto& of = kernels().chains.template of<T>();
        auto z = room(size), sums = room(batch), many = room(size * count);
        std::vector<int64_t> states(batch * count * n), found(batch);
        { FaultBox faults; of.argmax(chains, z.data(), threads, faults); }
        { FaultBox faults; of.k_best(chains, count, states.data(), found.data(), threads, faults); }
        { FaultBox faults; of.sums(chains, sums.data(), z.data(), threads, faults); }
        { FaultBox faults; of.hessian(chains, grad.data(), z.data(), threads, faults); }
        { FaultBox faults; of.sample(chains, some.data(), count, many.data(), threads, faults); }
        { FaultBox faults; of.project_blocks(chains, z.data(), threads, faults); }
        { FaultBox faults; of.pull_blocks(chains, grad.data(), 0.5, z.data(), threads, faults); }
    }
    void grids() {
        const int64_t batch = pick(1, 5), n = pick(1, 18), m = pick(1, 18), size = batch * n * m, count = pick(1, 4);
        const auto scores = values(size), grad = values(size);
        auto exists = mask(size);
        const auto some = seeds(batch * count);
        auto z = room(size), sums = room(batch), many = room(size * count);
        std::vector<int64_t> found(batch);
        std::vector<uint8_t> there(batch);
        const CellBatch<T> cells{scores.data(), exists.data(), batch, n, m};
        const auto& of = kernels().alignments.template of<T>();
        { FaultBox faults; of.argmax(cells, z.data(), threads, faults); }
        { FaultBox faults; of.sums(cells, sums.data(), z.data(), threads, faults); }
        { FaultBox faults; of.hessian(cells, grad.data(), z.data(), threads, faults); }
        { FaultBox faults; of.sample(cells, some.data(), count, many.data(), threads, faults); }
        { FaultBox faults; of.k_best(cells, count, many.data(), found.data(), threads, faults); }
        const auto& matchings = kernels().matchings.template of<T>();
        for (const bool complete : {false, true}) {
            { FaultBox faults; matchings.match(scores.data(), exists.data(), batch, n, m, complete, z.data(), there.data(), threads, faults); }
            FaultBox faults;
            matchings.project(scores.data(), exists.data(), batch, n, m, complete, z.data(), threads, faults);
        }
    }
    void spans() {
        const int64_t batch = pick(1, 4), n = pick(1, 14), labels = pick(1, 4), size = batch * n * n * labels, count = pick(1, 4);
        const auto scores = values(size), grad = values(size);
        const auto exists = mask(size);
        const auto some = seeds(batch * count);
        auto z = room(size), sums = room(batch), many = room(size * count);
        std::vector<int64_t> found(batch);
        const SpanBatch<T> spans{scores.data(), exists.data(), batch, n, labels};
        const auto& of = kernels().spans.template of<T>();
        { FaultBox faults; of.argmax(spans, z.data(), threads, faults); }
        { FaultBox faults; of.sums(spans, sums.data(), z.data(), threads, faults); }
        { FaultBox faults; of.hessian(spans, grad.data(), z.data(), threads, faults); }
        { FaultBox faults; of.sample(spans, some.data(), count, many.data(), threads, faults); }
        { FaultBox faults; of.k_best(spans, count, many.data(), found.data(), threads, faults); }
    }
    void subsets() {
        const int64_t rows = pick(1, 12), width = pick(1, 40), size = rows * width, draws = pick(1, 3), least = pick(0, 3);
        const int64_t most = chance() < 0.3 ? -1 : least + pick(0, 4);
        const auto scores = values(size), grad = values(size);
        const auto exists = mask(size);
        const auto some = seeds(rows * draws);
        auto z = room(size), sums = room(rows), many = room(size * draws);
        const auto& of = kernels().subsets.template of<T>();
        const T* s = scores.data();
        const uint8_t* e = exists.data();
        { FaultBox faults; of.argmax(s, e, rows, width, least, most, z.data(), threads, faults); }
        { FaultBox faults; of.project(s, e, rows, width, least, most, z.data(), threads, faults); }
        { FaultBox faults; of.sums(s, e, rows, width, least, most, sums.data(), z.data(), threads, faults); }
        { FaultBox faults; of.hessian(s, e, grad.data(), rows, width, least, most, z.data(), threads, faults); }
        { FaultBox faults; of.sample(s, e, some.data(), draws, rows, width, least, most, many.data(), threads, faults); }
    }
    void recurrences() {
        const int64_t batch = pick(1, 7), n = pick(1, 9), units = pick(1, 21), places = batch * n;
        Case<float> other{std::mt19937_64(dice()), threads};
        const auto one = [&](int64_t count) { return other.values(count); };
        std::vector<int64_t> lengths(batch);
        for (int64_t& length : lengths) length = pick(0, n);
        const auto right = one(places * 4 * units), left = one(places * 4 * units), wanted = one(places * 2 * units);
        const auto on = one(4 * units * units), back = one(4 * units * units);
        std::vector<float> states(places * 2 * units), opened[2], cells[2], gates[2];
        RecurrentBatch given{lengths.data(), batch, n, units, {right.data(), left.data()}, {on.data(), back.data()}, states.data(), {}, {}, wanted.data(), {}};
        for (int way = 0; way < 2; ++way) {
            opened[way].resize(places * 4 * units), cells[way].resize(places * units), gates[way].resize(places * 4 * units);
            given.opened[way] = opened[way].data(), given.cells[way] = cells[way].data(), given.wanted_gates[way] = gates[way].data();
        }
        kernels().encoders.recur(given, threads);
        kernels().encoders.recur_back(given, threads);
    }
    // The first layer of perceptrons over pairs of words, there and back, and tanh alone.
    void pairs() {
        const int64_t rows = pick(1, 9), others = pick(1, 9), width = pick(1, 41), count = pick(0, 150);
        Case<float> other{std::mt19937_64(dice()), threads};
        const auto one = [&](int64_t size) { return other.values(size); };
        const auto first = one(rows * width), second = one(others * width), wanted = one(count * width);
        std::vector<int64_t> from(count), to(count);
        for (int64_t& row : from) row = pick(0, rows - 1);
        for (int64_t& row : to) row = pick(0, others - 1);
        std::vector<float> values(count * width), first_wanted(rows * width), second_wanted(others * width);
        const PairRows given{first.data(), second.data(), from.data(), to.data(), count, width, values.data(), wanted.data(), first_wanted.data(), second_wanted.data()};
        kernels().encoders.pair_tanh(given, threads);
        kernels().encoders.pair_tanh_back(given, threads);
        kernels().encoders.tanh_all(first.data(), first_wanted.data(), rows * width, threads);
    }
    // Products in whole numbers: of sides of words, for the best label of each pair and for likely graphs.
    void products() {
        const int64_t batch = pick(1, 4), n = pick(1, 21), width = pick(1, 33), labels = pick(1, chance() < 0.2 ? 64 : 9), tags = pick(1, 5);
        const int64_t columns = 4 * kernels().encoders.lanes, padded = (labels * (width + 1) + columns - 1) / columns * columns;
        Case<float> other{std::mt19937_64(dice()), threads};
        const auto one = [&](int64_t count) { return other.values(count); };
        const auto heads = one(batch * n * width), dependents = one(batch * n * width), scale = one(padded), bias = one(padded);
        const auto predicates = one(batch * n), arcs = one(batch * n * n);
        std::vector<int16_t> weight(padded * 2 * ((width + 1) / 2));
        for (int16_t& value : weight) value = static_cast<int16_t>(pick(-500, 500));
        std::vector<int64_t> lengths(batch), tag(batch * n), reach(2 * tags * tags);
        const auto possible = seeds(tags * tags);
        for (int64_t& length : lengths) length = pick(1, n);
        for (int64_t& value : tag) value = pick(0, tags - 1);
        for (int64_t& value : reach) value = pick(0, n);
        const auto single = mask(labels);
        std::vector<int64_t> bits(possible);
        for (int64_t& value : bits) value &= static_cast<int64_t>(~uint64_t(0) >> (64 - labels));
        std::vector<float> best(batch * n * n);
        std::vector<int32_t> which(batch * n * n);
        const BestProducts pairs{heads.data(), dependents.data(), lengths.data(), batch, n, width, labels, pick(-1, labels - 1), weight.data(), scale.data(), bias.data(), best.data(), which.data()};
        kernels().encoders.best_products(pairs, threads);
        const LikelyGraphs likely{heads.data(), dependents.data(), lengths.data(), batch, n, width, labels, weight.data(), scale.data(), bias.data(),
                                  predicates.data(), arcs.data(), tag.data(), bits.data(), reach.data(), tags, single.data(), 0.1f, which.data()};
        kernels().encoders.likely_graphs(likely, threads);
        for (const int64_t outputs : {int64_t(1), labels * (width + 1)}) {  // few, and many
            std::vector<float> results(batch * n * outputs);
            const WholeProduct product{heads.data(), batch * n, width, outputs, weight.data(), scale.data(), bias.data(), results.data()};
            kernels().encoders.whole_product(product, threads);
        }
    }
    void all() {
        recurrences();
        pairs();
        products();
        trees();
        graphs();
        blocks();
        chains();
        grids();
        spans();
        subsets();
    }
};

void rounds(uint64_t seed, int count) {
    for (int round = 0; round < count; ++round) {
        Case<float>{std::mt19937_64(seed + round), 1 + round % 4}.all();
        Case<double>{std::mt19937_64(seed + round), 1 + round % 4}.all();
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int count = argc > 1 ? std::atoi(argv[1]) : 200;
    const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    rounds(seed, count);
    std::vector<std::thread> callers;  // several at once, as the threads of a server call
    for (int i = 0; i < 3; ++i) callers.emplace_back(rounds, seed + 1000 * (i + 1), count / 4);
    for (std::thread& caller : callers) caller.join();
    std::printf("%s: %d rounds from seed %llu, and three callers at once: nothing found\n", spigot::kernels().name, count,
                static_cast<unsigned long long>(seed));
}
