#pragma once

#include "agents/nccl/coflow_key.h"
#include "coflow/units.h"

/// How much a collective sends, before it does. Pure.
namespace weir::nccl {

/// "ncclFloat32" has 4; what is not known counts as 1.
Bytes BytesOfDatatype(const char* datatype);

/// What a rank sends to each peer that it sends to at all. `given`: bytes of NCCL's count (of a send: all of it; of
/// all-gather and reduce-scatter: a rank's part). `algorithm` as NCCL writes it ("RING", "TREE"); `ranks` 0: not known.
/// Exact for rings and sends. A tree's halves go to different peers, and the end of a broadcast's ring sends nothing:
/// what such a coflow really sent is known when the next like it comes.
Bytes BytesToPeer(Function function, const char* algorithm, Bytes given, int ranks);

}  // namespace weir::nccl
