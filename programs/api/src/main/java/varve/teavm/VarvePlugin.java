package varve.teavm;

import org.teavm.backend.wasm.TeaVMWasmGCHost;
import org.teavm.vm.spi.TeaVMHost;
import org.teavm.vm.spi.TeaVMPlugin;

/** Found by the compiler on a program's class path. */
public final class VarvePlugin implements TeaVMPlugin {
    @Override
    public void install(TeaVMHost host) {
        host.add(new VarveTransformer());
        host.add(new MarkTransformer(host.getResourceProvider()));
        host.add(new EnumMapTransformer());
        host.add(new MonitorTransformer());
        host.add(new CurrencyTransformer());
        DurableClasses classes = new DurableClasses(new ProgramClasses(host.getProperties().getProperty(ProgramClasses.PROPERTY, "")));
        host.add(classes);
        TeaVMWasmGCHost wasm = host.getExtension(TeaVMWasmGCHost.class);
        if (wasm != null) {
            wasm.contributeToCodeGen((context, registry) -> {
                if (classes.found()) {
                    ClassesSection.add(context, classes);
                }
            });
        }
    }
}
