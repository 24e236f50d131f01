// Inputs and results of each collective, for programs that check or time all kinds alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/collective.h"

namespace mcastcoll::test {

inline constexpr CollectiveKind kAllKinds[] = {
    CollectiveKind::broadcast, CollectiveKind::barrier,   CollectiveKind::reduce,
    CollectiveKind::allreduce, CollectiveKind::allgather, CollectiveKind::gather,
    CollectiveKind::scatter,   CollectiveKind::alltoall,  CollectiveKind::reduce_scatter};

struct Party {
    CollectiveKind kind = CollectiveKind::barrier;
    std::uint32_t root = 0;
    std::size_t elements = 0;  // number of elements of the vector, or of one block
    std::uint32_t self = 0, size = 1;
};

// The number of elements of a member's input and output. In place, the shorter of the two lies in the longer,
// at position `own`.
struct Shape {
    std::size_t input = 0, output = 0;
    std::size_t own = 0;
    bool is_input_longer = false;
};
Shape shape_of(const Party& party);

// Where an element of the result comes from; in a reduction, from this place of every member's input.
struct Origin {
    std::uint32_t member = 0;
    std::size_t place = 0;
};
Origin origin_of(const Party& party, std::size_t place);

// A member's input and result. In place, and always in a broadcast, the shorter of the two lies in the
// longer.
template <class Number>
struct Material {
    Party party{};
    Shape shape{};
    bool in_place = false;
    std::size_t result_at = 0;          // position in the buffer
    std::vector<Number> buffer, input;  // in place, both are in the buffer

    // `element` returns a member's value at a place.
    template <class Element>
    void lay_out(const Party& of, bool wanted_in_place, const Element& element) {
        party = of;
        shape = shape_of(party);
        in_place = party.kind == CollectiveKind::broadcast ||
                   (wanted_in_place && shape.input > 0 && shape.output > 0);
        result_at = in_place && shape.is_input_longer ? shape.own : 0;
        buffer.assign(in_place ? std::max(shape.input, shape.output) : shape.output, Number(-1));
        input.resize(in_place ? 0 : shape.input);
        for (std::size_t i = 0; i < shape.input; ++i) input_data()[i] = element(party.self, i);
    }
    // Fills in the operation's buffers: null for an absent input or output.
    void put_into(auto& operation) {
        operation.kind = party.kind;
        operation.bytes = party.elements * sizeof(Number);
        operation.input = shape.input > 0 ? reinterpret_cast<std::byte*>(input_data()) : nullptr;
        operation.buffer =
            shape.output > 0 ? reinterpret_cast<std::byte*>(buffer.data() + result_at) : nullptr;
    }
    Number found(std::size_t place) const { return buffer[result_at + place]; }
    // Returns an element of the result. A reduction combines in the order of members.
    template <class Element, class Combine>
    Number expected(std::size_t place, const Element& element, const Combine& combine) const {
        const Origin from = origin_of(party, place);
        Number value = element(from.member, from.place);
        for (std::uint32_t member = 1; member < party.size && is_reduction(party.kind); ++member)
            value = combine(value, element(member, from.place));
        return value;
    }

  private:
    Number* input_data() {
        return in_place ? buffer.data() + (shape.is_input_longer ? 0 : shape.own) : input.data();
    }
};

}  // namespace mcastcoll::test
