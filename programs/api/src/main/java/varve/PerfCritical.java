package varve;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks an allocation site, as {@link Varve#critical} does, where it stands: {@code new @PerfCritical Vertex(id)}. Other types than
 * those of a {@code new} are not marked by it, nor are arrays. Where a line has several {@code new} of a class, all of them are marked.
 */
@Retention(RetentionPolicy.CLASS)
@Target(ElementType.TYPE_USE)
public @interface PerfCritical {
}
