//! Linear memories and tables as a whole. Addresses and lengths of 32 bits come here as 64.

use super::arrays::{check, helper};
use crate::error::{Result, TrapKind};
use crate::store::Vm;
use varve_access::Kind;

helper! {
    /// `memory.grow`: the old size in pages, or -1, of which memories of 32 bits take the low half.
    memory_grow(vm, memory: u32, pages: u64) -> u64 { Ok(vm.grow_memory(memory, pages).unwrap_or(u64::MAX)) }
}

helper! {
    /// `memory.fill`
    memory_fill(vm, memory: u32, to: u64, value: u32, len: u64) {
        let bytes = vm.memories[memory as usize].bytes_mut();
        check(to, len, bytes.len() as u64, TrapKind::MemoryOutOfBounds)?;
        bytes[to as usize..][..len as usize].fill(value as u8);
        vm.observe_memory(Kind::Write, memory, to, len);
        Ok(())
    }
}

helper! {
    /// `memory.copy`
    memory_copy(vm, to_memory: u32, from_memory: u32, to: u64, from: u64, len: u64) {
        let source = vm.memories[from_memory as usize].bytes();
        check(from, len, source.len() as u64, TrapKind::MemoryOutOfBounds)?;
        let source = source[from as usize..].as_ptr();
        let target = vm.memories[to_memory as usize].bytes_mut();
        check(to, len, target.len() as u64, TrapKind::MemoryOutOfBounds)?;
        // SAFETY: both ranges were checked; they may overlap.
        unsafe { std::ptr::copy(source, target[to as usize..].as_mut_ptr(), len as usize) };
        vm.observe_memory(Kind::Read, from_memory, from, len);
        vm.observe_memory(Kind::Write, to_memory, to, len);
        Ok(())
    }
}

helper! {
    /// `memory.init`
    memory_init(vm, instance: u32, segment: u32, memory: u32, to: u64, from: u32, len: u32) {
        vm.memory_init(instance, segment, memory, to, from, len)?;
        vm.observe_memory(Kind::Write, memory, to, len.into());
        Ok(())
    }
}

helper! {
    /// `data.drop`
    data_drop(vm, instance: u32, segment: u32) { vm.instances[instance as usize].dropped_data[segment as usize] = true; Ok(()) }
}

helper! {
    /// `table.grow`: the same of a table, in elements.
    table_grow(vm, table: u32, value: u32, by: u64) -> u64 {
        Ok(vm.grow_table(table, by, value).unwrap_or(u64::MAX))
    }
}

helper! {
    /// `table.fill`
    table_fill(vm, table: u32, to: u64, value: u32, len: u64) {
        let t = vm.tables[table as usize].elements_mut();
        check(to, len, t.len() as u64, TrapKind::TableOutOfBounds)?;
        t[to as usize..][..len as usize].fill(value);
        Ok(())
    }
}

helper! {
    /// `table.copy`
    table_copy(vm, to_table: u32, from_table: u32, to: u64, from: u64, len: u64) {
        let source = vm.tables[from_table as usize].elements();
        check(from, len, source.len() as u64, TrapKind::TableOutOfBounds)?;
        let source = source[from as usize..].as_ptr();
        let target = vm.tables[to_table as usize].elements_mut();
        check(to, len, target.len() as u64, TrapKind::TableOutOfBounds)?;
        // SAFETY: both ranges were checked; they may overlap.
        unsafe { std::ptr::copy(source, target[to as usize..].as_mut_ptr(), len as usize) };
        Ok(())
    }
}

helper! {
    /// `table.init`
    table_init(vm, instance: u32, segment: u32, table: u32, to: u64, from: u32, len: u32) {
        vm.table_init(instance, segment, table, to, from, len)
    }
}

helper! {
    /// `elem.drop`
    elem_drop(vm, instance: u32, segment: u32) { vm.instances[instance as usize].elements[segment as usize].clear(); Ok(()) }
}
