//! Constraints of single ops, named by the op table.

use super::OpContext;

macro_rules! pending {
    ($($name:ident)*) => {$(pub(crate) fn $name(_: &mut OpContext<'_>) {})*};
}
pending! { alloc loop_ memset ramp dma activation tensor_tensor tensor_scalar scalar_tensor_tensor
    tensor_reduce select copy_predicated matmult transpose bn_stats bn_aggr scan max8 register_load
    register_store register_move }
