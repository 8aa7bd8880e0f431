/** The OpenAPI document as the TypeScript types that openapi-fetch reads: `paths`, `operations`, `components`. It is in
 *  a separate workspace, because openapi-typescript needs the compiler API of an older TypeScript than the sources
 *  use. */
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript'
import type { OpenApiDocument } from '../../kit/http/openapi.ts'

/** The text of a module of types. */
export async function clientTypes(document: OpenApiDocument): Promise<string> {
  // a document is one of its inputs
  const asServed = JSON.parse(JSON.stringify(document)) as Parameters<typeof openapiTS>[0]
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
