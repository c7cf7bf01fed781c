// SPDX-License-Identifier: Apache-2.0
// Reads one handwritten digit in C++: digits_cpp models/digits/digits.onnx
#include <graphrt/graphrt.hpp>

#include <algorithm>
#include <iostream>
#include <vector>

int main(int argc, char **argv)
try {
    graphrt::runtime runtime;
    graphrt::session session(graphrt::model(runtime, argc > 1 ? argv[1] : "models/digits/digits.onnx"));
    graphrt::context context(session);

    std::vector<float> image(64); // a nine
    for (int pixel : {10, 11, 12, 18, 20, 26, 27, 28, 36, 44, 51, 52})
        image[static_cast<size_t>(pixel)] = 1;
    context.set_input("image", graphrt::view(image.data(), {1, 1, 8, 8}));
    context.run();

    const graphrt::tensor logits = context.output("logits");
    const float *first = logits.values<float>();
    std::cout << "digit " << std::max_element(first, first + logits.elements()) - first << "\n";
    return 0;
} catch (const graphrt::error &e) {
    std::cerr << "digits_cpp: " << e.what() << "\n";
    return 1;
}
