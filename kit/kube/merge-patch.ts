/** Merge patches (RFC 7396). */

/** A merge patch that makes one map of another: what is left out is removed. */
export const replacing = (
  from: Readonly<Record<string, string>>,
  to: Readonly<Record<string, string>>,
): Record<string, string | null> => ({ ...Object.fromEntries(Object.keys(from).map((key) => [key, null])), ...to })
