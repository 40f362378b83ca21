//! Loops with one access pattern each: to measure a machine, to disturb a neighbour, to defeat a policy.

use crate::entry::WorkloadEntry;

pub mod access;
pub mod adversary;
pub mod chase;
pub mod membench;
pub mod stream;

/// The workloads of this module.
pub const ENTRIES: &[WorkloadEntry] = &[
    stream::ENTRY,
    access::ENTRY,
    chase::ENTRY,
    adversary::ENTRY,
    membench::ENTRY,
];

#[cfg(test)]
mod tests {
    use crate::harness::digest;
    use crate::registry::build;

    /// A digest of each, of 64 bits, as the first version has it that computed them; of GUPS the first with one update in flight.
    const DIGESTS: &str = "\
c6979554b3ae82a7 stream:bytes=1MiB,passes=3,values
727b6c9bb1183870 stream:bytes=1MiB,passes=8,op=triad,nt
27223945c8650a09 access:bytes=1MiB,blocks=7k
732a4348e50aa87e access:bytes=1MiB,blocks=7k,pattern=random,op=update
c69827b1c3fd6f25 access:bytes=1MiB,blocks=3k,op=flush,fence=4
60b5e0841208271f access:bytes=1MiB,blocks=3k,op=nt,block=256,delay=7ns
dbdbaf6355ff2a14 chase:bytes=1MiB,steps=7k
9bb122e553f23df9 chase:bytes=1MiB,steps=0,time=200us,node=256
50e74be55a0ae325 adversary:cache=1MiB,updates=7k
8fab1c10e308cc31 adversary:cache=1MiB,updates=0,time=200us,hot=50%,seed=7
068591672ece9c44 membench:hot=64kB,cold=640kB,writes=5k
69adb8b3bf41d84e membench:hot=64kB,cold=640kB,writes=5k,organize,remote=30,delay=9ns
893f819f438e12b9 gups:bytes=1MiB,updates=7k,values
f44796713a8e083e gups:bytes=1MiB,updates=7k,place=one,shift=10us,to_hot=80%
fe37181fe6efb44e gups:bytes=1MiB,updates=7k,place=scattered,group=8,touch=64
";

    /// Results that were published stand on these ops: a change of any of them is a change of the workload.
    #[test]
    fn the_ops_are_those_of_all_versions_before() {
        let now = DIGESTS.lines().map(|row| {
            let (_, line) = row.split_once(' ').unwrap();
            format!(
                "{:016x} {line}\n",
                digest(&mut *build(&format!("{line},threads=16")).unwrap())
            )
        });
        assert_eq!(now.collect::<String>(), DIGESTS);
    }
}
