/** The OpenAPI document as the TypeScript types that openapi-fetch reads: `paths`, `operations`, `components`. Lives in
 *  a workspace of its own, because openapi-typescript builds on the compiler API of a TypeScript that the sources have
 *  left behind. */
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
