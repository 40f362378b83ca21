package varve;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Says what a class, a field or a constant of an enumeration was called before, so that durable objects of an older version of the program
 * are found under the new name: {@code @Renamed("bank.Account") class CheckingAccount}, {@code @Renamed("sum") long balance}. A class is
 * named in full, as {@link Class#getName} does, all else by itself. Classes within a renamed one are renamed with it. Once all regions have
 * been opened by a program with the new name, the annotation may go.
 */
@Retention(RetentionPolicy.CLASS)
@Target({ElementType.TYPE, ElementType.FIELD})
public @interface Renamed {
    /** The old name; several if it was renamed more than once. */
    String[] value();
}
