"""Room: what a collective run says of itself: nccl-tests output, NCCL logs, and what they prove. Pure."""
