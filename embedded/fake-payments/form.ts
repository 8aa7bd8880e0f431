/** Parses bodies of the processor's API: `lines[0][amount]=5` becomes `{ lines: { 0: { amount: '5' } } }`. */

export type Form = { readonly [name: string]: string | Form }

export function parseForm(body: string): Form {
  const form: Record<string, unknown> = {}
  for (const [name, value] of new URLSearchParams(body)) {
    const path = [...name.matchAll(/[^[\]]+/g)].map(([part]) => part)
    const last = path.pop()
    if (last === undefined) continue
    let at = form
    for (const part of path) at = (at[part] ??= {}) as Record<string, unknown> // both a text and an object: invalid
    at[last] = value
  }
  return form as Form // contains only texts and the objects above
}

export const fieldText = (form: Form, name: string): string | undefined => {
  const value = form[name]
  return typeof value === 'string' ? value : undefined
}
export const formOf = (form: Form, name: string): Form => {
  const value = form[name]
  return typeof value === 'object' ? value : {}
}
export const textsOf = (form: Form): Record<string, string> =>
  Object.fromEntries(
    Object.entries(form).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  )
