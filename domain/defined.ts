type Defined<Fields> = { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> }

/** The fields that have a value. Fields that are undefined are absent from the result, as JSON leaves them out and as
 *  optional fields require; the others keep their order. */
export function defined<Fields extends object>(fields: Fields): Defined<Fields> {
  const present = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(present) as Defined<Fields> // some of its entries
}
