/** Secrets that an answer holds and that nobody can read later: a webhook's secret, new credentials. Pure. */

export interface Secrets {
  /** By the name of the field. */
  readonly values: Readonly<Record<string, string>>
  /** Until when what they replace is accepted too; absent when it is refused at once. */
  readonly previousValidUntil?: string
}

/** The secrets of one item; undefined when the answer that showed them was lost. */
export interface Shown {
  readonly id: string
  readonly name: string
  readonly secrets: Secrets | undefined
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

/** What the answer of a request shows once, of an item; undefined when it shows nothing. A request that was sent again
 *  is answered without its secrets: the first answer had them. */
export function shownIn(
  answer: Readonly<Record<string, unknown>>,
  { id, name, hasSecrets }: { readonly id: string; readonly name: string; readonly hasSecrets: boolean },
): Shown | undefined {
  const secrets = secretsIn(answer)
  return secrets === undefined && !hasSecrets ? undefined : { id, name, secrets }
}
