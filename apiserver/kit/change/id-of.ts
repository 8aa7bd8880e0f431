/** The id in the path of a call whose route has one. */
export const idOf = ({ params }: { readonly params: unknown }): string =>
  // the schema of the route has it
  (params as { readonly id: string }).id
