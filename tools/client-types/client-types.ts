/** The OpenAPI document as the TypeScript types that openapi-fetch reads: `paths`, `operations`, `components`. It is in
 *  a separate workspace, because openapi-typescript needs the compiler API of an older TypeScript than the sources
 *  use. */
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript'
import { DRY_RUN_MEDIA_TYPE } from '../../kit/http/dry-run.ts'
import type { OpenApiDocument } from '../../kit/http/openapi.ts'
import { KNOWN_VALUES } from '../../kit/http/openapi-fields.ts'

/** The text of a module of types. Answers have the known values as types, which check nothing at run time: a value that
 *  is added is no error. */
export async function clientTypes(document: OpenApiDocument): Promise<string> {
  // a document is one of its inputs
  const asServed = JSON.parse(JSON.stringify(document), forTypes) as Parameters<typeof openapiTS>[0]
  // Members with a default may be left out of requests; every component can be imported by its name.
  return (
    COMMENT_HEADER +
    astToString(
      await openapiTS(asServed, {
        defaultNonNullable: false,
        silent: true,
        rootTypes: true,
        rootTypesNoSchemaPrefix: true,
        rootTypesKeepCasing: true,
      }),
    )
  )
}

function forTypes(key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (key === 'responses') return withoutDryRuns(value)
  return KNOWN_VALUES in value ? { ...value, enum: value[KNOWN_VALUES] } : value
}

/** Answers to dry runs have a separate type, `DryRun`: in the types of the operations, each answer to a change would
 *  be one of two. */
function withoutDryRuns(value: object): object {
  return Object.fromEntries(
    Object.entries(value as Readonly<Record<string, { readonly content?: object }>>).flatMap(([status, response]) => {
      const { content } = response
      if (content === undefined || !(DRY_RUN_MEDIA_TYPE in content)) return [[status, response]]
      const { [DRY_RUN_MEDIA_TYPE]: _dryRun, ...ordinary } = content as Readonly<Record<string, unknown>>
      return Object.keys(ordinary).length === 0 ? [] : [[status, { ...response, content: ordinary }]]
    }),
  )
}
