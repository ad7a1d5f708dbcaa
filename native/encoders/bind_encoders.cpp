// Encoders that only read, and the recurrent half of those that learn.
#include "bind.hpp"

namespace spigot {

static RecurrentBatch recurrent(In<int64_t>& lengths, In<float>& right, In<float>& left, Out<float>& states,
                                Out<float>& opened, Out<float>& cells) {
    RecurrentBatch batch{};
    batch.lengths = lengths.data();
    batch.batch = static_cast<int64_t>(states.shape(0));
    batch.n = static_cast<int64_t>(states.shape(1));
    batch.units = static_cast<int64_t>(states.shape(2)) / 2;
    batch.weights[0] = right.data();
    batch.weights[1] = left.data();
    batch.states = states.data();
    for (int direction = 0; direction < 2; ++direction) {  // the first axis of both
        batch.opened[direction] = opened.data() + direction * (opened.size() / 2);
        batch.cells[direction] = cells.data() + direction * (cells.size() / 2);
    }
    return batch;
}

static PairRows pair_rows(In<int64_t>& first_row, In<int64_t>& second_row, Out<float>& values) {
    PairRows rows{};
    rows.first_row = first_row.data();
    rows.second_row = second_row.data();
    rows.pairs = static_cast<int64_t>(values.shape(0));
    rows.width = static_cast<int64_t>(values.shape(1));
    rows.values = values.data();
    return rows;
}

void bind_encoders(nb::module_& m) {
    const EncoderKernels& k = kernels().encoders;
    m.attr("LSTM_LANES") = k.lanes;
    m.def("lstm_layer", [&k](In<float> inputs, In<int64_t> place, In<int64_t> lengths, In<int16_t> input,
                             In<float> input_scale, In<float> bias, In<int16_t> state, In<float> state_scale,
                             Out<float> states, int64_t width, int threads) {
        LstmBatch batch;
        batch.inputs = inputs.data();
        batch.rows = static_cast<int64_t>(inputs.shape(0));
        batch.stride = static_cast<int64_t>(inputs.shape(1));
        batch.width = width;
        batch.apart = batch.stride - width;  // none, or one input behind the other
        batch.place = place.data();
        batch.lengths = lengths.data();
        batch.batch = static_cast<int64_t>(place.shape(0));
        batch.n = static_cast<int64_t>(place.shape(1));
        batch.units = static_cast<int64_t>(states.shape(2)) / 2;
        batch.states = states.data();
        for (int direction = 0; direction < 2; ++direction)  // the first axis of all weights
            batch.weights[direction] = {
                input.data() + direction * (input.size() / 2), input_scale.data() + direction * (input_scale.size() / 2),
                bias.data() + direction * (bias.size() / 2), state.data() + direction * (state.size() / 2),
                state_scale.data() + direction * (state_scale.size() / 2)};
        nb::gil_scoped_release release;
        k.lstm_layer(batch, threads);
    });
    m.def("whole_product", [&k](In<float> inputs, In<int16_t> weight, In<float> scale, In<float> bias,
                                Out<float> results, int threads) {
        WholeProduct product;
        product.inputs = inputs.data();
        product.rows = static_cast<int64_t>(inputs.shape(0));
        product.width = static_cast<int64_t>(inputs.shape(1));
        product.outputs = static_cast<int64_t>(results.shape(1));
        product.weight = weight.data();
        product.scale = scale.data();
        product.bias = bias.data();
        product.results = results.data();
        nb::gil_scoped_release release;
        k.whole_product(product, threads);
    });
    m.def("recur", [&k](In<float> right_gates, In<float> left_gates, In<float> right, In<float> left,
                        In<int64_t> lengths, Out<float> states, Out<float> opened, Out<float> cells, int threads) {
        RecurrentBatch batch = recurrent(lengths, right, left, states, opened, cells);
        batch.gates[0] = right_gates.data();
        batch.gates[1] = left_gates.data();
        nb::gil_scoped_release release;
        k.recur(batch, threads);
    });
    m.def("recur_back", [&k](In<float> wanted, In<float> right, In<float> left, In<int64_t> lengths, Out<float> states,
                             Out<float> opened, Out<float> cells, Out<float> right_gates, Out<float> left_gates,
                             int threads) {
        RecurrentBatch batch = recurrent(lengths, right, left, states, opened, cells);
        batch.wanted = wanted.data();
        batch.wanted_gates[0] = right_gates.data();
        batch.wanted_gates[1] = left_gates.data();
        nb::gil_scoped_release release;
        k.recur_back(batch, threads);
    });
    m.def("best_products", [&k](In<float> heads, In<float> dependents, In<int64_t> lengths, In<int16_t> weight,
                                In<float> scale, In<float> bias, Out<float> best, Out<int32_t> which, int64_t labels,
                                int64_t root, int threads) {
        BestProducts products;
        products.heads = heads.data();
        products.dependents = dependents.data();
        products.lengths = lengths.data();
        products.batch = static_cast<int64_t>(heads.shape(0));
        products.n = static_cast<int64_t>(heads.shape(1));
        products.width = static_cast<int64_t>(heads.shape(2));
        products.labels = labels;
        products.root = root;
        products.weight = weight.data();
        products.scale = scale.data();
        products.bias = bias.data();
        products.best = best.data();
        products.which = which.data();
        nb::gil_scoped_release release;
        k.best_products(products, threads);
    });
    m.def("likely_graphs", [&k](In<float> heads, In<float> dependents, In<int64_t> lengths, In<int16_t> weight,
                                In<float> scale, In<float> bias, In<float> predicates, In<float> arcs, In<int64_t> tags,
                                In<int64_t> possible, In<int64_t> reach, In<bool> deterministic, float threshold,
                                Out<int32_t> roles, int threads) {
        LikelyGraphs graphs;
        graphs.heads = heads.data();
        graphs.dependents = dependents.data();
        graphs.lengths = lengths.data();
        graphs.batch = static_cast<int64_t>(heads.shape(0));
        graphs.n = static_cast<int64_t>(heads.shape(1));
        graphs.width = static_cast<int64_t>(heads.shape(2));
        graphs.labels = static_cast<int64_t>(deterministic.shape(0));
        graphs.weight = weight.data();
        graphs.scale = scale.data();
        graphs.bias = bias.data();
        graphs.predicates = predicates.data();
        graphs.arcs = arcs.data();
        graphs.tags = tags.data();
        graphs.possible = possible.data();
        graphs.reach = reach.data();
        graphs.tag_count = static_cast<int64_t>(possible.shape(0));
        graphs.deterministic = bytes(deterministic);
        graphs.threshold = threshold;
        graphs.roles = roles.data();
        nb::gil_scoped_release release;
        k.likely_graphs(graphs, threads);
    });
    m.def("pair_tanh", [&k](In<float> first, In<float> second, In<int64_t> first_row, In<int64_t> second_row,
                            Out<float> values, int threads) {
        PairRows rows = pair_rows(first_row, second_row, values);
        rows.first = first.data();
        rows.second = second.data();
        nb::gil_scoped_release release;
        k.pair_tanh(rows, threads);
    });
    m.def("pair_tanh_back", [&k](In<float> wanted, In<int64_t> first_row, In<int64_t> second_row, Out<float> values,
                                 Out<float> first_wanted, Out<float> second_wanted, int threads) {
        PairRows rows = pair_rows(first_row, second_row, values);
        rows.wanted = wanted.data();
        rows.first_wanted = first_wanted.data();
        rows.second_wanted = second_wanted.data();
        nb::gil_scoped_release release;
        k.pair_tanh_back(rows, threads);
    });
    m.def("tanh_all", [&k](In<float> values, Out<float> to, int threads) {
        nb::gil_scoped_release release;
        k.tanh_all(values.data(), to.data(), static_cast<int64_t>(values.size()), threads);
    });
}

}  // namespace spigot
