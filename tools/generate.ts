/** Writes the generated files: `npm run generate`. The CRDs, one per kind, and the ClusterRoles of accounts, from the
 *  definitions in `resources/`; the charts' rights of the webhook, the API server, the controllers and the agents, from
 *  the registrations in `apiserver/` and `controllers/` and the rules of the embedded Kubernetes API; the tables of
 *  values in the charts' READMEs, from their schemas; the page of settings, from those of the processes; the
 *  page of changes, from the registrations of nouns; what the portal knows of the routes. Unit tests compare the
 *  committed files with this output. Every `npm ci` generates the types of the client (`--client`, and nothing else),
 *  which are not committed. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { apiServerRights } from '../apiserver/kit/admission/rights.ts'
import { webhookRules } from '../apiserver/kit/admission/webhook.ts'
import { KINDS } from '../apiserver/nouns.ts'
import { CONTROLLERS } from '../controllers/index.ts'
import { controllerRights } from '../controllers/rights.ts'
import { NODE_RULES } from '../embedded/kubernetes/access/default-roles.ts'
import { openApiDocument } from '../kit/http/openapi.ts'
import type { Route } from '../kit/http/route.ts'
import { answerHelp } from '../kit/sys/help.ts'
import { printLine, processArguments, workingDirectory } from '../kit/sys/process.ts'
import { ACCOUNT_ROLES } from '../resources/account-roles.ts'
import { FIELD_DESCRIPTIONS } from '../resources/descriptions.ts'
import { crds } from '../controllers/kit/crds.ts'
import { ROUTES } from '../resources/index.ts'
import { VERSION } from '../domain/version.ts'
import { changesPage } from './changes-page.ts'
import { withValueTable } from './chart-values.ts'
import { clientTypes } from './client-types/client-types.ts'
import { portalFiles } from './portal-catalogue.ts'
import { settingsPage } from './settings-page.ts'

export const CRD_FOLDER = 'crds'
export const ROLE_FOLDER = 'roles'
export const CHART_CRD_FOLDER = 'charts/svccloud/files/crds'
export const CHART_ROLE_FOLDER = 'charts/svccloud/files/roles'
export const CHART_FOLDER = 'charts'
export const PORTAL_FOLDER = 'portal/generated'
export const SETTINGS_PAGE = 'docs/settings.md'
export const CHANGES_PAGE = 'docs/changing.md'
export const CHARTS = ['svccloud', 'svccloud-node-agent'] as const
const headerOf = (source: string): string =>
  `# Generated from ${source} by \`npm run generate\`; never edited by hand.\n`

type Files = ReadonlyMap<string, string>

const textOf = (value: object, source = 'resources/'): string =>
  headerOf(source) + stringify(value, { lineWidth: 0, aliasDuplicateObjects: false })

/** Text by file name. */
export const crdFiles = (): Files =>
  new Map(crds().map((crd) => [`${crd.metadata.name.split('.')[0]}.yaml`, textOf(crd)]))

/** Text by file name. */
export const roleFiles = (): Files =>
  new Map(ACCOUNT_ROLES.map((role) => [`${role.metadata.name.split(':').at(-1)}.yaml`, textOf(role)]))

/** In its own namespace. That namespace is an object of the cluster, and has a separate rule in the chart. */
const agentRights = NODE_RULES.flatMap(({ resources = [], ...rule }) => {
  const namespaced = resources.filter((resource) => resource !== 'namespaces')
  return namespaced.length === 0 ? [] : [{ ...rule, resources: namespaced }]
})

/** Text by path: for which kinds the Kubernetes API calls the webhook, and the rights of the API server, the
 *  controllers and the agents. */
export const chartFiles = (): Files => {
  const controllers = controllerRights(CONTROLLERS)
  const ofControllers = (rules: object) => textOf(rules, 'controllers/index.ts')
  return new Map([
    ['svccloud/files/webhook-rules.yaml', textOf(webhookRules(KINDS), 'apiserver/nouns.ts')],
    ['svccloud/files/apiserver-rights.yaml', textOf(apiServerRights(KINDS), 'apiserver/nouns.ts')],
    ['svccloud/files/controllers-rights.yaml', ofControllers(controllers.everywhere)],
    ['svccloud/files/controllers-namespace-rights.yaml', ofControllers(controllers.inNamespaces)],
    ['svccloud/files/controllers-system-rights.yaml', ofControllers(controllers.inSystem)],
    ['svccloud-node-agent/files/agent-rights.yaml', textOf(agentRights, 'embedded/kubernetes/access/default-roles.ts')],
  ])
}

/** Text by path: the charts' READMEs, whose tables of values are generated and whose other text is kept. */
export async function chartReadmes(): Promise<Files> {
  const read = (path: string): Promise<string> => readFile(join(import.meta.dirname, '..', CHART_FOLDER, path), 'utf8')
  const readmes = CHARTS.map(async (chart) => {
    const [readme, schema, values] = await Promise.all(
      ['README.md', 'values.schema.json', 'values.yaml'].map((file) => read(`${chart}/${file}`)),
    )
    return [`${chart}/README.md`, withValueTable(readme ?? '', schema ?? '', values ?? '')] as const
  })
  return new Map(await Promise.all(readmes))
}

/** Types of the operations for an audience, from its document without examples. */
const typesFor = (wanted: Route['audience']): Promise<string> =>
  clientTypes(
    openApiDocument(
      ROUTES.filter(({ audience }) => audience === wanted),
      { title: 'svccloud', description: '', version: VERSION, serverUrl: '/', descriptions: FIELD_DESCRIPTIONS },
    ),
  )

/** The types of the TypeScript client, and those of the operators' portal. */
export const clientFiles = async (): Promise<Files> =>
  new Map([
    ['schema.ts', await typesFor('customer')],
    ['operator-schema.ts', await typesFor('operator')],
  ])

/** Ensures that the folder contains exactly these files. */
async function writeFiles(name: string, files: Files): Promise<void> {
  const folder = join(workingDirectory(), name)
  await mkdir(folder, { recursive: true })
  for (const present of await readdir(folder)) if (!files.has(present)) await rm(join(folder, present))
  for (const [file, text] of files) await writeFile(join(folder, file), text)
  printLine(`${files.size} files written to ${name}/`)
}

async function writeClient(): Promise<void> {
  for (const [file, text] of await clientFiles()) await writeFile(join(workingDirectory(), 'client', file), text)
}

/** The committed files. */
async function writeCommitted(): Promise<void> {
  await writeFiles(CRD_FOLDER, crdFiles())
  await writeFiles(ROLE_FOLDER, roleFiles())
  // a chart has no links: Helm warns about them, and an archive may lose them
  await writeFiles(CHART_CRD_FOLDER, crdFiles())
  await writeFiles(CHART_ROLE_FOLDER, roleFiles())
  for (const [file, text] of [...chartFiles(), ...(await chartReadmes())])
    await writeFile(join(workingDirectory(), CHART_FOLDER, file), text)
  await writeFile(join(workingDirectory(), SETTINGS_PAGE), settingsPage())
  await writeFile(join(workingDirectory(), CHANGES_PAGE), changesPage())
  await writeFiles(PORTAL_FOLDER, portalFiles(ROUTES))
}

if (import.meta.main) {
  answerHelp(import.meta.filename)
  if (!processArguments().includes('--client')) await writeCommitted()
  await writeClient()
}
