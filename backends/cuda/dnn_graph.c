/* SPDX-License-Identifier: Apache-2.0 */
/* See dnn_graph.h. Residuals are added before the bias: only in that order has cuDNN precompiled engines. */
#include "backends/cuda/dnn_graph.h"

enum { MAX_RANK = 2 + CUDA_DNN_SPATIAL, ALIGNMENT = 16 /* of every tensor */ };

void cuda_dnn_note(cuda_dnn_execution *p, cudnnStatus_t status)
{
    if ((int)status >= CUDNN_STATUS_NOT_INITIALIZED && (int)status < CUDNN_STATUS_BAD_PARAM)
        p->unsure = true;
}

void cuda_dnn_check(cuda_dnn_builder *b, cudnnStatus_t status)
{
    cuda_dnn_note(b->plan, status);
    if (b->status == CUDNN_STATUS_SUCCESS)
        b->status = status;
}

cudnnBackendDescriptor_t cuda_dnn_make(cuda_dnn_builder *b, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t made = NULL;
    if (b->status != CUDNN_STATUS_SUCCESS)
        return NULL;
    if (b->plan->n_descriptors == CUDA_DNN_DESCRIPTORS) {
        b->status = CUDNN_STATUS_INTERNAL_ERROR;
        return NULL;
    }
    cuda_dnn_check(b, b->dnn->cudnnBackendCreateDescriptor(type, &made));
    if (made)
        b->plan->descriptors[b->plan->n_descriptors++] = made;
    return made;
}

void cuda_dnn_set(cuda_dnn_builder *b, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
    if (b->status == CUDNN_STATUS_SUCCESS)
        cuda_dnn_check(b, b->dnn->cudnnBackendSetAttribute(d, name, type, n, values));
}

static void set_int(cuda_dnn_builder *b, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                    int64_t value)
{
    cuda_dnn_set(b, d, name, CUDNN_TYPE_INT64, 1, &value);
}

static void set_float(cuda_dnn_builder *b, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                      float value)
{
    cuda_dnn_set(b, d, name, CUDNN_TYPE_FLOAT, 1, &value);
}

void cuda_dnn_set_descriptor(cuda_dnn_builder *b, cudnnBackendDescriptor_t d,
                             cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value)
{
    cuda_dnn_set(b, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void dnn_conv_set_type(cuda_dnn_builder *b, cudnnBackendDescriptor_t d,
                              cudnnBackendAttributeName_t name, cudnnDataType_t value)
{
    cuda_dnn_set(b, d, name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

cudnnStatus_t cuda_dnn_set_device(const cuda_dnn_execution *p, cudnnBackendDescriptor_t d,
                                  cudnnBackendAttributeName_t by_handle,
                                  cudnnBackendAttributeName_t by_description, cudnnHandle_t handle)
{
    if (p->description)
        return p->dnn->cudnnBackendSetAttribute(d, by_description, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                                &p->description);
    return p->dnn->cudnnBackendSetAttribute(d, by_handle, CUDNN_TYPE_HANDLE, 1, &handle);
}

void cuda_dnn_finish(cuda_dnn_builder *b, cudnnBackendDescriptor_t d)
{
    if (b->status == CUDNN_STATUS_SUCCESS)
        cuda_dnn_check(b, b->dnn->cudnnBackendFinalize(d));
}

static cudnnDataType_t dnn_conv_data_type(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT16    ? CUDNN_DATA_HALF
           : dtype == GRT_DTYPE_BFLOAT16 ? CUDNN_DATA_BFLOAT16
                                         : CUDNN_DATA_FLOAT;
}

/* dims in the order n, c, spatial; strides of a dense tensor with channels first or last. */
static cudnnBackendDescriptor_t dnn_conv_tensor(cuda_dnn_builder *b, const cuda_dnn_conv *c, int64_t uid,
                                                const int64_t *dims, bool is_virtual)
{
    const int32_t rank = c->spatial + 2;
    int64_t strides[MAX_RANK], step = 1;
    if (c->last) {
        strides[1] = 1;
        step = dims[1];
    }
    for (int32_t i = rank - 1; i >= 2; i--) {
        strides[i] = step;
        step *= dims[i];
    }
    if (!c->last) {
        strides[1] = step;
        step *= dims[1];
    }
    strides[0] = step;
    cudnnBackendDescriptor_t d = cuda_dnn_make(b, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    dnn_conv_set_type(b, d, CUDNN_ATTR_TENSOR_DATA_TYPE,
                      is_virtual ? CUDNN_DATA_FLOAT : dnn_conv_data_type(c->dtype));
    cuda_dnn_set(b, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, dims);
    cuda_dnn_set(b, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, strides);
    set_int(b, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
    set_int(b, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, ALIGNMENT);
    if (is_virtual)
        cuda_dnn_set(b, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    cuda_dnn_finish(b, d);
    return d;
}

/* Where a step's result goes: y if it is the last. */
static cudnnBackendDescriptor_t dnn_conv_result(cuda_dnn_builder *b, const cuda_dnn_conv *c,
                                                const int64_t *dims, bool is_last)
{
    return is_last ? dnn_conv_tensor(b, c, CUDA_DNN_Y, dims, false)
                   : dnn_conv_tensor(b, c, CUDA_DNN_VIRTUAL + b->n_virtual++, dims, true);
}

static void add_operation(cuda_dnn_builder *b, cudnnBackendDescriptor_t d)
{
    cuda_dnn_finish(b, d);
    if (b->n_operations < CUDA_DNN_OPERATIONS)
        b->operations[b->n_operations++] = d;
}

static void convolution(cuda_dnn_builder *b, const cuda_dnn_conv *c, cudnnBackendDescriptor_t x,
                        cudnnBackendDescriptor_t w, cudnnBackendDescriptor_t y)
{
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnBackendDescriptor_t window = cuda_dnn_make(b, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set_int(b, window, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, c->spatial);
    dnn_conv_set_type(b, window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    cuda_dnn_set(b, window, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    cuda_dnn_set(b, window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, c->spatial, c->padding);
    cuda_dnn_set(b, window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, c->spatial, c->padding);
    cuda_dnn_set(b, window, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, c->spatial, c->dilation);
    cuda_dnn_set(b, window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, c->spatial, c->stride);
    cuda_dnn_finish(b, window);
    if (c->transposed) {
        cudnnBackendDescriptor_t d =
            cuda_dnn_make(b, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
        cuda_dnn_set_descriptor(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, window);
        cuda_dnn_set_descriptor(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, x);
        cuda_dnn_set_descriptor(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, w);
        cuda_dnn_set_descriptor(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, y);
        set_float(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 1.0f);
        set_float(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 0.0f);
        add_operation(b, d);
        return;
    }
    cudnnBackendDescriptor_t d = cuda_dnn_make(b, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    cuda_dnn_set_descriptor(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, window);
    cuda_dnn_set_descriptor(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
    cuda_dnn_set_descriptor(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
    cuda_dnn_set_descriptor(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
    set_float(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1.0f);
    set_float(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0.0f);
    add_operation(b, d);
}

/* y = x + other, or relu(x) where other is NULL. */
static void pointwise(cuda_dnn_builder *b, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x,
                      cudnnBackendDescriptor_t other, cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t kind = cuda_dnn_make(b, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cuda_dnn_set(b, kind, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    dnn_conv_set_type(b, kind, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    cuda_dnn_finish(b, kind);
    cudnnBackendDescriptor_t d = cuda_dnn_make(b, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    cuda_dnn_set_descriptor(b, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
    cuda_dnn_set_descriptor(b, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (other)
        cuda_dnn_set_descriptor(b, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, other);
    cuda_dnn_set_descriptor(b, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    add_operation(b, d);
}

cudnnBackendDescriptor_t cuda_dnn_graph_build(cuda_dnn_builder *b, const cuda_dnn_conv *c,
                                              cudnnHandle_t handle)
{
    int64_t x_dims[MAX_RANK] = {c->batch, c->in_channels}, y_dims[MAX_RANK] = {c->batch, c->out_channels};
    int64_t w_dims[MAX_RANK], bias_dims[MAX_RANK] = {1, c->out_channels, 1, 1, 1};
    w_dims[0] = c->transposed ? c->in_channels : c->out_channels;
    w_dims[1] = (c->transposed ? c->out_channels : c->in_channels) / c->groups;
    for (int32_t i = 0; i < c->spatial; i++) {
        x_dims[2 + i] = c->in[i];
        y_dims[2 + i] = c->out[i];
        w_dims[2 + i] = c->kernel[i];
    }
    cudnnBackendDescriptor_t x = dnn_conv_tensor(b, c, CUDA_DNN_X, x_dims, false),
                             w = dnn_conv_tensor(b, c, CUDA_DNN_W, w_dims, false);
    cudnnBackendDescriptor_t at = dnn_conv_result(b, c, y_dims, !c->residual && !c->bias && !c->relu), next;
    convolution(b, c, x, w, at);
    if (c->residual) {
        cudnnBackendDescriptor_t residual = dnn_conv_tensor(b, c, CUDA_DNN_RESIDUAL, y_dims, false);
        next = dnn_conv_result(b, c, y_dims, !c->bias && !c->relu);
        pointwise(b, CUDNN_POINTWISE_ADD, at, residual, next);
        at = next;
    }
    if (c->bias) {
        cudnnBackendDescriptor_t bias = dnn_conv_tensor(b, c, CUDA_DNN_BIAS, bias_dims, false);
        next = dnn_conv_result(b, c, y_dims, !c->relu);
        pointwise(b, CUDNN_POINTWISE_ADD, at, bias, next);
        at = next;
    }
    if (c->relu)
        pointwise(b, CUDNN_POINTWISE_RELU_FWD, at, NULL, dnn_conv_result(b, c, y_dims, true));
    cudnnBackendDescriptor_t graph = cuda_dnn_make(b, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (!b->plan->description)
        cuda_dnn_set(b, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    cuda_dnn_set(b, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, b->n_operations,
                 b->operations);
    cuda_dnn_finish(b, graph);
    return graph;
}
