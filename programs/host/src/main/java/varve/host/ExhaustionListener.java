package varve.host;

import org.teavm.dependency.AbstractDependencyListener;
import org.teavm.dependency.DependencyAgent;

/** Every program exports {@link Exhaustion}. */
final class ExhaustionListener extends AbstractDependencyListener {
    @Override
    public void started(DependencyAgent agent) {
        agent.linkClass(Exhaustion.class.getName());
    }
}
