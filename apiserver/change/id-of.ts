/** The id in the path of a call whose route has one. */
export const idOf = ({ params }: { readonly params: unknown }): string => (params as { readonly id: string }).id // generic code has lost the type of the route's own schema
