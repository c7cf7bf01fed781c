/* SPDX-License-Identifier: Apache-2.0 */
#include "arrays.h"

#include "streams.h"

#include <algorithm>
#include <cstring>
#include <nanobind/stl/vector.h>

namespace
{

/* What NumPy knows of a dtype. Objects live as long as the process: interpreters end before libraries are
 * unloaded. */
struct Element {
    PyObject
        *storage;   /* dtype of arrays whose memory the library uses; NULL for strings and packed elements */
    PyObject *seen; /* ml_dtypes' dtype that users see instead; NULL if it is the storage's, or ml_dtypes is
                       not there */
};
Element elements[GRT_DTYPE_COUNT];
PyObject *numpy_empty, *numpy_ndarray, *prepare_input, *unpack_output, *string_output, *missing_dtype,
    *map_output, *prepare_map;

/* PEP 3118's letters of one element, native byte order. */
grt_dtype dtype_of_format(const char *format, Py_ssize_t size)
{
    if (!format)
        return GRT_DTYPE_UINT8;
    if (*format == '@' || *format == '=' || (*format == '<' && PY_LITTLE_ENDIAN))
        format++;
    if (format[0] == 'Z')
        return format[1] == 'f'   ? GRT_DTYPE_COMPLEX64
               : format[1] == 'd' ? GRT_DTYPE_COMPLEX128
                                  : GRT_DTYPE_NONE;
    if (format[0] && format[1])
        return GRT_DTYPE_NONE;
    static const grt_dtype ints[] = {GRT_DTYPE_INT8, GRT_DTYPE_INT16, GRT_DTYPE_INT32, GRT_DTYPE_INT64};
    static const grt_dtype uints[] = {GRT_DTYPE_UINT8, GRT_DTYPE_UINT16, GRT_DTYPE_UINT32, GRT_DTYPE_UINT64};
    const int log = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
    switch (*format) {
    case 'f':
        return GRT_DTYPE_FLOAT;
    case 'd':
        return GRT_DTYPE_DOUBLE;
    case 'e':
        return GRT_DTYPE_FLOAT16;
    case '?':
        return GRT_DTYPE_BOOL;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
        return ints[log];
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
        return uints[log];
    default:
        return GRT_DTYPE_NONE;
    }
}

/* DLPack's codes beyond those that nanobind names. */
grt_dtype dtype_of_dlpack(nb::dlpack::dtype type)
{
    enum { INT, UINT, FLOAT, OPAQUE, BFLOAT, COMPLEX, BOOL, E4M3FN = 10, E4M3FNUZ, E5M2, E5M2FNUZ, E8M0 };
    if (type.lanes != 1)
        return GRT_DTYPE_NONE;
    switch (type.code << 8 | type.bits) {
#define X(code, bits, dtype)   \
    case (code) << 8 | (bits): \
        return GRT_DTYPE_##dtype;
        X(INT, 8, INT8)
        X(INT, 16, INT16)
        X(INT, 32, INT32)
        X(INT, 64, INT64)
        X(UINT, 8, UINT8)
        X(UINT, 16, UINT16)
        X(UINT, 32, UINT32)
        X(UINT, 64, UINT64)
        X(FLOAT, 16, FLOAT16)
        X(FLOAT, 32, FLOAT)
        X(FLOAT, 64, DOUBLE)
        X(BFLOAT, 16, BFLOAT16)
        X(COMPLEX, 64, COMPLEX64)
        X(COMPLEX, 128, COMPLEX128)
        X(BOOL, 8, BOOL)
        X(E4M3FN, 8, FLOAT8E4M3FN)
        X(E4M3FNUZ, 8, FLOAT8E4M3FNUZ)
        X(E5M2, 8, FLOAT8E5M2)
        X(E5M2FNUZ, 8, FLOAT8E5M2FNUZ)
        X(E8M0, 8, FLOAT8E8M0)
#undef X
    default:
        return GRT_DTYPE_NONE;
    }
}

bool is_dense(const nb::ndarray<nb::ro> &array)
{
    int64_t stride = 1;
    for (size_t i = array.ndim(); i-- > 0; stride *= (int64_t)array.shape(i))
        if (array.shape(i) > 1 && array.stride(i) != stride && array.size() > 0)
            return false;
    return true;
}

void set_rank(grt_tensor &tensor, Py_ssize_t rank)
{
    if (rank > GRT_MAX_RANK)
        raise_invalid("an array of rank " + std::to_string(rank) + "; tensors have at most " +
                      std::to_string(GRT_MAX_RANK) + " dims");
    tensor.rank = (int32_t)rank;
}

nb::object shape_of(int32_t rank, const int64_t *dims)
{
    nb::object shape = taken(PyTuple_New(rank));
    for (int32_t i = 0; i < rank; i++)
        if (PyTuple_SetItem(shape.ptr(), i, PyLong_FromLongLong(dims[i])) != 0)
            throw nb::python_error();
    return shape;
}

nb::object called(PyObject *function, std::initializer_list<PyObject *> arguments)
{
    return taken(PyObject_Vectorcall(function, arguments.begin(), arguments.size(), nullptr));
}

nb::object python_dtype(grt_dtype dtype)
{
    return taken(PyUnicode_FromString(grt_dtype_name(dtype)));
}

nb::object strings_copy(const grt_tensor &tensor, nb::handle shape)
{
    nb::object list = taken(PyList_New((Py_ssize_t)grt_tensor_elements(&tensor)));
    const grt_string *strings = (const grt_string *)tensor.data;
    for (Py_ssize_t i = 0; i < PyList_Size(list.ptr()); i++) {
        PyObject *text =
            PyUnicode_DecodeUTF8(strings[i].data, (Py_ssize_t)strings[i].size, "surrogateescape");
        if (!text || PyList_SetItem(list.ptr(), i, text) != 0)
            throw nb::python_error();
    }
    return called(string_output, {list.ptr(), shape.ptr()});
}

} // namespace

void arrays_init()
{
    nb::module_ helpers = nb::module_::import_("graphrt._arrays");
    nb::object table = helpers.attr("element_dtypes")();
#define X(name, number, bits, text)                                                       \
    if (nb::object row = table.attr("get")(text); !row.is_none()) {                       \
        nb::object storage = row[nb::int_(0)], seen = row[nb::int_(1)];                   \
        elements[number].storage = storage.is_none() ? nullptr : storage.release().ptr(); \
        elements[number].seen = seen.is_none() ? nullptr : seen.release().ptr();          \
    }
    GRT_DTYPE_LIST(X)
#undef X
    nb::module_ numpy = nb::module_::import_("numpy");
    numpy_empty = nb::object(numpy.attr("empty")).release().ptr();
    numpy_ndarray = nb::object(numpy.attr("ndarray")).release().ptr();
    prepare_input = nb::object(helpers.attr("prepare_input")).release().ptr();
    unpack_output = nb::object(helpers.attr("unpack_output")).release().ptr();
    string_output = nb::object(helpers.attr("string_output")).release().ptr();
    missing_dtype = nb::object(helpers.attr("missing_dtype")).release().ptr();
    map_output = nb::object(helpers.attr("map_output")).release().ptr();
    prepare_map = nb::object(helpers.attr("prepare_map")).release().ptr();
}

Pointer pointer_to(uintptr_t address, int dtype, const std::vector<int64_t> &dims, int device)
{
    Pointer pointer{sized<grt_tensor>()};
    grt_tensor &tensor = pointer.tensor;
    tensor.dtype = (grt_dtype)dtype;
    set_rank(tensor, (Py_ssize_t)dims.size());
    std::copy(dims.begin(), dims.end(), tensor.dims);
    tensor.data = (void *)address;
    tensor.memory = device < 0 ? GRT_MEMORY_HOST : GRT_MEMORY_DEVICE;
    tensor.device = device < 0 ? 0 : device;
    return pointer;
}

void arrays_bind(nb::module_ &module)
{
    nb::class_<Pointer>(module, "Pointer",
                        "Memory that is known by its address alone. Nothing keeps it alive.")
        .def(
            "__init__",
            [](Pointer *self, uintptr_t address, int dtype, const std::vector<int64_t> &dims, int device) {
                new (self) Pointer(pointer_to(address, dtype, dims, device));
            },
            nb::arg("address"), nb::arg("dtype"), nb::arg("shape"), nb::arg("device") = -1,
            "A dense tensor at an address: dtype is ONNX's number, device a CUDA device's or -1 for the "
            "host.");
}

void Operand::drop()
{
    if (has_buffer_)
        PyBuffer_Release(&buffer_);
    has_buffer_ = false;
    dlpack_.reset();
    owner_.reset();
    strings_.clear();
}

bool Operand::take_buffer(nb::handle object, int flags)
{
    if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | flags) != 0) {
        PyErr_Clear();
        return false;
    }
    has_buffer_ = true;
    tensor = {};
    tensor.dtype = dtype_of_format(buffer_.format, buffer_.itemsize);
    tensor.data = buffer_.buf;
    const size_t alignment = buffer_.itemsize > 8 ? 8 : (size_t)buffer_.itemsize;
    if (tensor.dtype == GRT_DTYPE_NONE || (alignment > 1 && (uintptr_t)buffer_.buf % alignment != 0)) {
        drop();
        return false;
    }
    set_rank(tensor, buffer_.ndim);
    for (int i = 0; i < buffer_.ndim; i++)
        tensor.dims[i] = buffer_.shape[i];
    return true;
}

bool Operand::take_dlpack(nb::handle object, bool writable, void *stream)
{
    if (PyObject_TypeCheck(object.ptr(), (PyTypeObject *)numpy_ndarray) || !nb::hasattr(object, "__dlpack__"))
        return false;
    const nb::object source = with_stream(object, stream);
    nb::ndarray<nb::ro> array;
    nb::ndarray<> writable_array;
    if (writable ? !nb::try_cast(source, writable_array, false) : !nb::try_cast(source, array))
        return false;
    if (writable)
        array = nb::ndarray<nb::ro>(writable_array);
    const int kind = array.device_type();
    const bool on_gpu = kind == nb::device::cuda::value || kind == nb::device::cuda_managed::value;
    if (!is_dense(array)) {
        if (on_gpu)
            raise_invalid("an array in a GPU's memory must be dense and row-major (torch: contiguous())");
        return false;
    }
    tensor = {};
    tensor.dtype = dtype_of_dlpack(array.dtype());
    if (tensor.dtype == GRT_DTYPE_NONE)
        return false;
    set_rank(tensor, (Py_ssize_t)array.ndim());
    for (size_t i = 0; i < array.ndim(); i++)
        tensor.dims[i] = (int64_t)array.shape(i);
    if (on_gpu) {
        tensor.memory = GRT_MEMORY_DEVICE;
        tensor.device = array.device_id();
    } else if (kind != nb::device::cpu::value && kind != nb::device::cuda_host::value) {
        raise_invalid("memory of DLPack device type " + std::to_string(kind) +
                      "; it must be the host's or a CUDA device's");
    }
    tensor.data = (void *)array.data();
    dlpack_ = std::move(array);
    return true;
}

/* What Python code makes of the object: (something with a buffer, dtype's number, dims), or strings as a list
 * of bytes. */
void Operand::take_prepared(nb::handle object, grt_dtype wanted)
{
    nb::object name = python_dtype(wanted);
    nb::object made = called(prepare_input, {object.ptr(), name.ptr()});
    nb::object data = made[nb::int_(0)];
    nb::tuple dims = nb::cast<nb::tuple>(made[nb::int_(2)]);
    const grt_dtype dtype = (grt_dtype)nb::cast<int>(made[nb::int_(1)]);
    if (dtype != GRT_DTYPE_STRING && !take_buffer(data, 0))
        throw nb::type_error("graphrt._arrays.prepare_input gave no buffer");
    if (dtype == GRT_DTYPE_STRING) {
        tensor = {};
        for (nb::handle item : nb::cast<nb::list>(data)) {
            char *bytes = nullptr;
            Py_ssize_t size = 0;
            if (PyBytes_AsStringAndSize(item.ptr(), &bytes, &size) != 0)
                throw nb::python_error();
            strings_.push_back({bytes, (size_t)size});
        }
        tensor.data = strings_.data();
    }
    owner_ = data;
    tensor.dtype = dtype;
    set_rank(tensor, (Py_ssize_t)dims.size());
    for (size_t i = 0; i < dims.size(); i++)
        tensor.dims[i] = nb::cast<int64_t>(dims[i]);
}

bool Operand::take_pointer(nb::handle object)
{
    Pointer *pointer = nullptr;
    if (nb::try_cast(object, pointer, false) && pointer)
        tensor = pointer->tensor;
    return pointer != nullptr;
}

void Operand::read(nb::handle object, grt_dtype wanted, void *stream)
{
    if (!take_buffer(object, 0) && !take_pointer(object) && !take_dlpack(object, false, stream))
        take_prepared(object, wanted);
}

void Operand::write(nb::handle object, void *stream)
{
    if (take_buffer(object, PyBUF_WRITABLE) || take_pointer(object) || take_dlpack(object, true, stream))
        return;
    /* Arrays of ml_dtypes have no buffer: an unsigned view of the same memory does. */
    nb::object name = python_dtype(GRT_DTYPE_NONE);
    if (PyObject_TypeCheck(object.ptr(), (PyTypeObject *)numpy_ndarray)) {
        nb::object made = called(prepare_input, {object.ptr(), name.ptr()});
        const grt_dtype dtype = (grt_dtype)nb::cast<int>(made[nb::int_(1)]);
        if (array_can_be_written(dtype) && take_buffer(made[nb::int_(0)], PyBUF_WRITABLE)) {
            nb::object base = made[nb::int_(0)].attr("base");
            if (base.is(object)) {
                owner_ = made[nb::int_(0)];
                tensor.dtype = dtype;
                return;
            }
        }
        drop();
    }
    raise_invalid("an output's memory must be an array that can be written: dense, row-major, aligned, in "
                  "the machine's byte order");
}

bool array_can_be_written(grt_dtype dtype)
{
    return dtype > GRT_DTYPE_NONE && dtype < GRT_DTYPE_COUNT && elements[dtype].storage;
}

nb::object array_make(grt_dtype dtype, int32_t rank, const int64_t *dims, void **data)
{
    nb::object shape = shape_of(rank, dims);
    nb::object array = called(numpy_empty, {shape.ptr(), elements[dtype].storage});
    Py_buffer buffer;
    if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_WRITABLE) != 0)
        throw nb::python_error();
    *data = buffer.buf;
    PyBuffer_Release(&buffer);
    return array;
}

nb::object array_finish(nb::object array, grt_dtype dtype)
{
    return elements[dtype].seen ? nb::object(array.attr("view")(nb::handle(elements[dtype].seen))) : array;
}

nb::object array_copy(const grt_tensor &tensor)
{
    if (tensor.memory == GRT_MEMORY_DEVICE)
        raise_status(GRT_STATUS_INTERNAL, "an output that is not bound is in a device's memory");
    if (array_can_be_written(tensor.dtype)) {
        void *data = nullptr;
        nb::object array = array_make(tensor.dtype, tensor.rank, tensor.dims, &data);
        if (const size_t size = grt_tensor_bytes(&tensor))
            memcpy(data, tensor.data, size);
        return array_finish(std::move(array), tensor.dtype);
    }
    nb::object shape = shape_of(tensor.rank, tensor.dims), name = python_dtype(tensor.dtype);
    if (tensor.dtype == GRT_DTYPE_STRING)
        return strings_copy(tensor, shape);
    if (!elements[tensor.dtype].seen)
        called(missing_dtype, {name.ptr()});
    nb::object packed =
        taken(PyBytes_FromStringAndSize((const char *)tensor.data, (Py_ssize_t)grt_tensor_bytes(&tensor)));
    return called(unpack_output, {packed.ptr(), name.ptr(), shape.ptr()});
}

/* Keys and values are Python's own: int or str, and numbers, as in onnxruntime. */
static nb::object map_to_python(const grt_value *map)
{
    grt_tensor keys, values;
    check(grt_value_tensor(grt_value_item(map, 0), &keys));
    check(grt_value_tensor(grt_value_item(map, 1), &values));
    nb::object key_array = array_copy(keys), value_array = array_copy(values);
    return called(map_output, {key_array.ptr(), value_array.ptr()});
}

nb::object value_to_python(const grt_value *value)
{
    const grt_kind kind = grt_value_kind(value);
    if (kind == GRT_KIND_TENSOR) {
        grt_tensor tensor;
        check(grt_value_tensor(value, &tensor));
        return array_copy(tensor);
    }
    if (kind == GRT_KIND_MAP)
        return map_to_python(value);
    if (kind == GRT_KIND_OPTIONAL)
        return grt_value_count(value) ? value_to_python(grt_value_item(value, 0)) : nb::none();
    if (kind != GRT_KIND_SEQUENCE)
        raise_status(GRT_STATUS_UNSUPPORTED,
                     "a value of kind " + std::to_string(kind) + ", which this package does not know");
    nb::list items;
    for (size_t i = 0; i < grt_value_count(value); i++)
        items.append(value_to_python(grt_value_item(value, i)));
    return items;
}

static OwnedValue map_from_python(nb::handle object, const ValueType &type)
{
    nb::object key_name = python_dtype(type.keys), value_name = python_dtype(type.dtype);
    nb::object arrays = called(prepare_map, {object.ptr(), key_name.ptr(), value_name.ptr()});
    Operand keys, values;
    keys.read(nb::object(arrays[nb::int_(0)]), type.keys);
    values.read(nb::object(arrays[nb::int_(1)]), type.dtype);
    grt_value *made = nullptr;
    check(grt_value_map(&keys.tensor, &values.tensor, &made));
    return OwnedValue(made);
}

static OwnedValue sequence_from_python(nb::handle object, const ValueType &type)
{
    std::vector<OwnedValue> items;
    std::vector<grt_value *> pointers;
    for (nb::handle item : object) {
        /* Items that are no maps are tensors, or sequences of these. */
        const bool nested = PyList_Check(item.ptr()) || PyTuple_Check(item.ptr());
        const grt_kind kind = type.element_kind == GRT_KIND_MAP ? GRT_KIND_MAP
                              : nested                          ? GRT_KIND_SEQUENCE
                                                                : GRT_KIND_TENSOR;
        items.push_back(value_from_python(item, {kind, kind, type.dtype, type.keys}));
        pointers.push_back(items.back().get());
    }
    grt_value *made = nullptr;
    check(grt_value_sequence(type.dtype, pointers.data(), pointers.size(), &made));
    return OwnedValue(made);
}

OwnedValue value_from_python(nb::handle object, const ValueType &type)
{
    grt_value *made = nullptr;
    if (type.kind == GRT_KIND_MAP)
        return map_from_python(object, type);
    if (type.kind == GRT_KIND_SEQUENCE)
        return sequence_from_python(object, type);
    if (type.kind == GRT_KIND_OPTIONAL) {
        OwnedValue item;
        if (!object.is_none())
            item = value_from_python(object, {type.element_kind, type.element_kind, type.dtype, type.keys});
        check(grt_value_optional(type.dtype, item.get(), &made));
    } else if (type.kind == GRT_KIND_TENSOR) {
        Operand operand;
        operand.read(object, type.dtype);
        check(grt_value_from_tensor(&operand.tensor, &made));
    } else {
        raise_status(GRT_STATUS_UNSUPPORTED,
                     "an input of kind " + std::to_string(type.kind) + ", which this package does not know");
    }
    return OwnedValue(made);
}
