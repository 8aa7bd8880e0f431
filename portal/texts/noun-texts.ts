/** What a registered noun is called, and what its empty list says. */
export interface NounTexts {
  readonly one: string
  readonly many: string
  readonly empty: { readonly title: string; readonly text: string }
}
