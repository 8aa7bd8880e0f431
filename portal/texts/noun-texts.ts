/** What a registered noun is called, and what its empty list says. */
export interface NounTexts {
  readonly one: string
  readonly many: string
  readonly empty: { readonly title: string; readonly text: string }
}

/** Several of them within a sentence: `servers`, but `SSH keys`. */
export const manyWithin = ({ one, many }: Pick<NounTexts, 'one' | 'many'>): string =>
  one.charAt(0) === one.charAt(0).toLowerCase() ? many.charAt(0).toLowerCase() + many.slice(1) : many
