/** Secrets that an answer holds and that nobody can read later: a webhook's secret, new credentials. Pure. */

export interface Secrets {
  /** By the name of the field. */
  readonly values: Readonly<Record<string, string>>
  /** Until when what they replace is accepted too; absent when it is refused at once. */
  readonly previousValidUntil?: string
}

/** The secrets of an answer; undefined when it has none. */
export function secretsIn(answer: Readonly<Record<string, unknown>>): Secrets | undefined {
  const { secret, credentials, previous_valid_until: until } = answer
  const values = Object.fromEntries(
    [...(typeof secret === 'string' ? [['secret', secret]] : []), ...Object.entries(Object(credentials))].filter(
      (pair): pair is [string, string] => typeof pair[1] === 'string',
    ),
  )
  if (Object.keys(values).length === 0) return undefined
  return { values, ...(typeof until === 'string' ? { previousValidUntil: until } : {}) }
}
