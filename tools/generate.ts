/** Writes the generated files: `npm run generate`. The CRDs, one per kind, the ClusterRoles of accounts and the types
 *  of
 *  the client, from the definitions in `resources/`; what the chart gives the webhook and the API server, from the
 *  nouns
 *  in `apiserver/`. Unit tests compare what is committed with what this makes. */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { apiServerRights } from '../apiserver/admission/rights.ts'
import { webhookRules } from '../apiserver/admission/webhook.ts'
import { KINDS } from '../apiserver/nouns.ts'
import { openApiDocument } from '../kit/http/openapi.ts'
import { crdOf } from '../kit/kube/crd.ts'
import { printLine, workingDirectory } from '../kit/sys/process.ts'
import { ACCOUNT_ROLES } from '../resources/account-roles.ts'
import { RESOURCES, ROUTES } from '../resources/index.ts'
import { VERSION } from '../resources/version.ts'
import { clientTypes } from './client-types/client-types.ts'

export const CRD_FOLDER = 'crds'
export const ROLE_FOLDER = 'roles'
export const CHART_FOLDER = 'charts/svccloud/files'
const CATEGORY = 'svccloud'
const headerOf = (source: string): string =>
  `# Generated from ${source} by \`npm run generate\`; never edited by hand.\n`

type Files = ReadonlyMap<string, string>

const textOf = (value: object, source = 'resources/'): string =>
  headerOf(source) + stringify(value, { lineWidth: 0, aliasDuplicateObjects: false })

/** Text by file name. */
export const crdFiles = (): Files =>
  new Map(RESOURCES.map((kind) => [`${kind.plural}.yaml`, textOf(crdOf(kind, CATEGORY))]))

/** Text by file name. */
export const roleFiles = (): Files =>
  new Map(ACCOUNT_ROLES.map((role) => [`${role.metadata.name.split(':').at(-1)}.yaml`, textOf(role)]))

/** Text by file name: for which kinds the Kubernetes API calls the webhook, and what the API server may do with them.
 */
export const chartFiles = (): Files =>
  new Map([
    ['webhook-rules.yaml', textOf(webhookRules(KINDS), 'apiserver/nouns.ts')],
    ['apiserver-rights.yaml', textOf(apiServerRights(KINDS), 'apiserver/nouns.ts')],
  ])

/** The types of the TypeScript client, from the customers' document without its examples. */
export const clientFiles = async (): Promise<Files> =>
  new Map([
    [
      'schema.ts',
      await clientTypes(
        openApiDocument(
          ROUTES.filter(({ audience }) => audience === 'customer'),
          { title: 'svccloud', description: '', version: VERSION, serverUrl: '/' },
        ),
      ),
    ],
  ])

/** Makes the folder hold these files and nothing else. */
async function writeFiles(name: string, files: Files): Promise<void> {
  const folder = join(workingDirectory(), name)
  await mkdir(folder, { recursive: true })
  for (const present of await readdir(folder)) if (!files.has(present)) await rm(join(folder, present))
  for (const [file, text] of files) await writeFile(join(folder, file), text)
  printLine(`${files.size} files written to ${name}/`)
}

if (import.meta.main) {
  await writeFiles(CRD_FOLDER, crdFiles())
  await writeFiles(ROLE_FOLDER, roleFiles())
  for (const [file, text] of chartFiles()) await writeFile(join(workingDirectory(), CHART_FOLDER, file), text)
  for (const [file, text] of await clientFiles()) await writeFile(join(workingDirectory(), 'client', file), text)
}
