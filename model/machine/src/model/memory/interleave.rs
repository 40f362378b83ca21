//! How addresses are spread over the channels of a socket, or of an expander.

use super::super::divide::Divisor;

/// See the module.
pub(super) struct Interleave {
    channels: Divisor,
    /// log2 of the bytes that lie together, `NO_INTERLEAVE` when a channel's lie together, and those bytes less 1.
    shift: u32,
    inside: u64,
    channel_bytes: u64,
}

const NO_INTERLEAVE: u32 = 63;

impl Interleave {
    /// Over `channels` of `channel_bytes`, `bytes` together; 0: a channel's lie together.
    pub fn new(channels: u32, bytes: u64, channel_bytes: u64) -> Interleave {
        let shift = bytes.checked_ilog2().unwrap_or(NO_INTERLEAVE);
        Interleave {
            channels: Divisor::new(channels as u64),
            shift,
            inside: (1 << shift) - 1,
            channel_bytes,
        }
    }

    /// Channel and channel-local address.
    #[inline(always)]
    pub fn place(&self, local: u64) -> (usize, u64) {
        if self.shift == NO_INTERLEAVE {
            // One channel's DIMMs after another's.
            let channel = local / self.channel_bytes;
            return (channel as usize, local % self.channel_bytes);
        }
        let (block, channel) = self.channels.divide(local >> self.shift);
        (channel as usize, block << self.shift | local & self.inside)
    }
}
