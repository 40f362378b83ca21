package varve.host;

import org.teavm.vm.spi.TeaVMHost;
import org.teavm.vm.spi.TeaVMPlugin;

/** Found by the compiler on a program's class path: completes the class library where it expects a browser. */
public final class HostPlugin implements TeaVMPlugin {
    @Override
    public void install(TeaVMHost host) {
        host.add(new SystemTransformer());
        host.add(new FileSystemTransformer());
        host.add(new ChecksTransformer());
        host.add(new ExhaustionListener());
    }
}
