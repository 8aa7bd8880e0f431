/** What the portal knows of the API is what the routes say. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROUTES } from '../../resources/index.ts'
import { PORTAL_FOLDER } from '../../tools/generate.ts'
import { portalFiles } from '../../tools/portal-catalogue.ts'

test('portal/generated is what the routes make: npm run generate', async () => {
  for (const [name, text] of portalFiles(ROUTES))
    expect(await readFile(join(import.meta.dirname, '../..', PORTAL_FOLDER, name), 'utf8'), name).toBe(text)
})
