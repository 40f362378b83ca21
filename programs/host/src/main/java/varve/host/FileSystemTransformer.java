package varve.host;

import org.teavm.model.ClassHolderTransformerContext;
import org.teavm.model.MethodHolder;
import org.teavm.model.emit.ProgramEmitter;
import org.teavm.runtime.fs.VirtualFileSystemProviderTransformer;

/** {@code java.io} and {@code java.nio.file} work on the host's files instead of files in memory. */
final class FileSystemTransformer extends VirtualFileSystemProviderTransformer {
    @Override
    protected void transformCreateMethod(MethodHolder method, ClassHolderTransformerContext context) {
        ProgramEmitter.create(method, context.getHierarchy()).construct(HostFileSystem.class).returnValue();
    }
}
