// How projections onto hulls hand over what they are made of: the arrays of a PackedSupport.
#pragma once

#include "bind.hpp"

namespace spigot {

// The members of each instance, as they come from any thread.
class Support {
public:
    explicit Support(size_t batch) : weights_(batch), places_(batch), parts_(batch) {}

    static void keep(void* context, int64_t instance, int members, int parts, const double* weights,
                     const int32_t* places) {
        auto* self = static_cast<Support*>(context);
        self->weights_[instance].assign(weights, weights + members);
        self->places_[instance].assign(places, places + int64_t{members} * parts);
        self->parts_[instance] = parts;
    }

    void pack() {
        for (size_t b = 0; b < weights_.size(); ++b) {
            if (weights_[b].empty()) {  // nothing exists: the empty structure, whole
                weights.push_back(1);
                starts.push_back(static_cast<int64_t>(indices.size()));
            }
            for (size_t t = 0; t < weights_[b].size(); ++t) {
                weights.push_back(weights_[b][t]);
                const auto first = places_[b].begin() + static_cast<int64_t>(t) * parts_[b];
                indices.insert(indices.end(), first, first + parts_[b]);
                starts.push_back(static_cast<int64_t>(indices.size()));
            }
            offsets.push_back(static_cast<int64_t>(weights.size()));
        }
        values.assign(indices.size(), 1.0);
    }

    std::vector<int64_t> offsets{0}, starts{0}, indices;
    std::vector<double> weights, values;

private:
    std::vector<std::vector<double>> weights_;
    std::vector<std::vector<int32_t>> places_;
    std::vector<int> parts_;
};

// Runs a projection without the interpreter lock: what it found wrong, and its support, empty if nobody asks for it.
template <class Project>
nb::tuple with_support(size_t batch, bool wanted, Project project) {
    FaultBox faults;
    Support support(wanted ? batch : 0);
    {
        nb::gil_scoped_release release;
        project(wanted ? Support::keep : nullptr, &support, faults);
        support.pack();
        if (!wanted) support.offsets.assign(batch + 1, 0);
    }
    return nb::make_tuple(describe(faults), to_numpy(std::move(support.offsets)), to_numpy(std::move(support.weights)),
                          to_numpy(std::move(support.starts)), to_numpy(std::move(support.indices)),
                          to_numpy(std::move(support.values)));
}

}  // namespace spigot
