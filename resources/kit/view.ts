/** Views: what the API shows of stored objects. Fields that differ only by case (`publicIpv4`, `public_ipv4`), times
 *  and absent values follow from the shape of the view; code lists the other fields. */
import { z } from 'zod'

/** A name of the stored form in the API's: `publicIpv4` is `public_ipv4`, and the kind `PublicPool` is `public_pool`. A
 *  path of fields keeps its dots. */
export const snakeCase = (name: string): string => name.replace(/(?<=[a-z0-9])[A-Z]/g, '_$&').toLowerCase()

type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name
/** Times are shown as RFC 3339. An absent value is left out if the field is optional, else null if it accepts null. */
type ShownValue<Value, Field> = Value extends Date
  ? string
  : Value extends undefined
    ? undefined extends Field
      ? undefined
      : null extends Field
        ? null
        : undefined
    : Value
/** Lists may be read-only: nothing changes a view. */
type Shape<View> = { readonly [F in keyof View]: Readonly<View[F]> }
type Names<View> = keyof View & string
/** FoundNames: fields of the view that the source has by name. Same: those of them with a matching type. */
type FoundNames<View, Source> = { [F in Names<View>]: Camel<F> extends keyof Source ? F : never }[Names<View>]
type Same<View, Source> = {
  [F in Names<View>]: Camel<F> extends infer Name extends keyof Source
    ? ShownValue<Source[Name], View[F]> extends View[F]
      ? F
      : never
    : never
}[Names<View>]
/** All other fields. Fields that the source has with another type are required; the rest are optional overrides. */
type Rest<View, Source> = Omit<View, FoundNames<View, Source>> &
  Required<Pick<View, Exclude<FoundNames<View, Source>, Same<View, Source>>>> &
  Partial<Pick<View, Same<View, Source>>>

interface Field {
  readonly name: string
  readonly key: string
  readonly isNullable: boolean
  readonly isOptional: boolean
}
type Fields = readonly Field[]
const FIELDS = new WeakMap<z.ZodObject, Fields>()

function fieldsOf(view: z.ZodObject): Fields {
  const known = FIELDS.get(view)
  if (known !== undefined) return known
  const fields = Object.entries<z.core.$ZodType>(view.shape).map(([name, field]) => ({
    name,
    key: name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
    isNullable: z.safeParse(field, null).success,
    isOptional: z.safeParse(field, undefined).success,
  }))
  FIELDS.set(view, fields)
  return fields
}

/** Each field of the view comes from `rest`, else from the source field in camelCase. No other source field is
 *  shown. */
export function viewOf<View extends z.ZodObject, Source extends object>(
  view: View,
  source: Source,
  rest: Rest<Shape<z.infer<View>>, Source>,
): z.infer<View> {
  const shown = fieldsOf(view).map(({ name, key, isNullable, isOptional }) => {
    const stored: unknown = Reflect.get(source, key)
    const value = stored ?? (isNullable && (stored === null || !isOptional) ? null : undefined)
    return [name, value instanceof Date ? value.toISOString() : value] as const
  })
  const found = Object.fromEntries(shown.filter(([, value]) => value !== undefined))
  return { ...found, ...rest } as z.infer<View> // `rest` has the fields that the source lacks
}
