/** Reads formulas, simplifies, evaluates and differentiates them, and counts what they are made of. */
package varve.formulas

sealed interface Formula
data class Number(val value: Double) : Formula
data class Variable(val name: String) : Formula
data class Binary(val operator: Char, val left: Formula, val right: Formula) : Formula

class SyntaxError(val text: String, val at: Int, expected: String) :
    Exception("`$text`: $expected expected at $at")

/** A reader by recursive descent. */
class Reader(private val text: String) {
    private var at = 0

    fun formula(): Formula {
        val result = sum()
        if (at < text.length) throw SyntaxError(text, at, "the end")
        return result
    }

    private fun sum() = chain("+-", ::product)
    private fun product() = chain("*/", ::atom)

    private fun chain(operators: String, part: () -> Formula): Formula {
        var left = part()
        while (peek()?.let { it in operators } == true) {
            val operator = text[at++]
            left = Binary(operator, left, part())
        }
        return left
    }

    private fun atom(): Formula = when (val c = peek()) {
        null -> throw SyntaxError(text, at, "a formula")
        '(' -> {
            at++
            val inner = sum()
            if (peek() != ')') throw SyntaxError(text, at, "`)`")
            at++
            inner
        }
        in '0'..'9' -> Number(take { it.isDigit() || it == '.' }.toDouble())
        else -> if (c.isLetter()) Variable(take { it.isLetter() }) else throw SyntaxError(text, at, "a formula")
    }

    private fun peek(): Char? {
        while (at < text.length && text[at] == ' ') at++
        return text.getOrNull(at)
    }

    private inline fun take(good: (Char) -> Boolean): String {
        val start = at
        while (at < text.length && good(text[at])) at++
        return text.substring(start, at)
    }
}

fun Formula.text(): String = when (this) {
    is Number -> if (value == value.toLong().toDouble()) value.toLong().toString() else value.toString()
    is Variable -> name
    is Binary -> "(${left.text()} $operator ${right.text()})"
}

fun Formula.value(variables: Map<String, Double>): Double = when (this) {
    is Number -> value
    is Variable -> variables[name] ?: throw NoSuchElementException("no value for $name")
    is Binary -> apply(operator, left.value(variables), right.value(variables))
}

private fun apply(operator: Char, a: Double, b: Double) = when (operator) {
    '+' -> a + b
    '-' -> a - b
    '*' -> a * b
    else -> a / b
}

fun Formula.derived(by: String): Formula = when (this) {
    is Number -> Number(0.0)
    is Variable -> Number(if (name == by) 1.0 else 0.0)
    is Binary -> when (operator) {
        '+', '-' -> Binary(operator, left.derived(by), right.derived(by))
        '*' -> Binary('+', Binary('*', left.derived(by), right), Binary('*', left, right.derived(by)))
        else -> Binary(
            '/',
            Binary('-', Binary('*', left.derived(by), right), Binary('*', left, right.derived(by))),
            Binary('*', right, right),
        )
    }
}

fun Formula.simple(): Formula {
    if (this !is Binary) return this
    val a = left.simple()
    val b = right.simple()
    return when {
        a is Number && b is Number -> Number(apply(operator, a.value, b.value))
        operator == '*' && (a == Number(0.0) || b == Number(0.0)) -> Number(0.0)
        operator == '*' && a == Number(1.0) -> b
        operator in "*/" && b == Number(1.0) -> a
        operator == '+' && a == Number(0.0) -> b
        operator in "+-" && b == Number(0.0) -> a
        else -> Binary(operator, a, b)
    }
}

fun Formula.parts(): Sequence<Formula> = sequence {
    yield(this@parts)
    if (this@parts is Binary) {
        yieldAll(left.parts())
        yieldAll(right.parts())
    }
}

fun main() {
    val variables = mapOf("x" to 3.0, "größe" to 0.5)
    for (text in listOf("1 + 2 * 3", "x*x*x - 2*x + 1", "(größe + x) / (x - 1)", "x / 0", "y + 1", "2 * (x", "", "1 2")) {
        try {
            val formula = Reader(text).formula()
            val slope = formula.derived("x").simple()
            println("${formula.text()} = ${formula.value(variables)}, slope ${slope.text()} = ${slope.value(variables)}")
        } catch (e: SyntaxError) {
            println("syntax: ${e.message}")
        } catch (e: NoSuchElementException) {
            println("value: ${e.message}")
        }
    }

    // One formula grows by rules of a generator with a seed: many small objects that live for different times.
    var seed = 42uL
    fun random(below: Int): Int {
        seed = seed * 6364136223846793005uL + 1442695040888963407uL
        return ((seed shr 33) % below.toULong()).toInt()
    }
    var formula: Formula = Variable("x")
    repeat(400) {
        val other = if (random(2) == 0) Variable("x") else Number(1.0 + random(9))
        formula = Binary("+-*/"[random(4)], formula, other)
        if (it % 10 == 9) formula = formula.simple()
    }
    val slope = formula.derived("x").simple()
    val kinds = slope.parts().groupingBy { if (it is Binary) it.operator.toString() else it::class.simpleName!! }.eachCount()
    println(kinds.entries.sortedWith(compareBy({ -it.value }, { it.key })).joinToString { "${it.key} ${it.value}" })
    println("text of ${slope.text().length} characters, hash ${slope.text().hashCode().toUInt().toString(16)}")
    println(slope.parts().filterIsInstance<Number>().map { it.value }.distinct().sorted().take(12).toList())
}
