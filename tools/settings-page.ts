/** `docs/settings.md`, from the schemas of the processes. */
import { z } from 'zod'
import { CloudControllerSettings, CsiControllerSettings, CsiNodeSettings } from '../addons/settings.ts'
import { NodeAgentSettings } from '../agents/node/settings.ts'
import { ApiServerSettings } from '../apiserver/settings.ts'
import { StaffSettings } from '../apiserver/staff/settings.ts'
import { ControllersSettings } from '../controllers/settings.ts'
import { MigrationsSettings } from '../db/settings.ts'
import {
  ControlPlanesSettings,
  FakePaymentsSettings,
  ForwarderSettings,
  KubernetesSettings,
  NetworkSettings,
  ObjectInterfaceSettings,
  ObjectStorageSettings,
  PostgresSettings,
} from '../embedded/kit/process-settings.ts'
import { PASSED_ON, PAYMENTS_PASSED_ON, StartSettings } from '../embedded/start-settings.ts'
import { ControlPlanesHostSettings } from '../hosting/pods/process-settings.ts'
import { SETTINGS_VARIABLE, variableOf, variablesOf } from '../kit/sys/settings.ts'

interface ProcessSettings {
  readonly title: string
  readonly about: string
  readonly schema: z.ZodObject
}

const OF_NPM_START = '`npm start` starts it and hands its settings over.'

export const PROCESSES: readonly ProcessSettings[] = [
  {
    title: 'npm start',
    about: 'Besides its flags (`npm start -- --help`), each of which has a variable too. The next list is passed on.',
    schema: StartSettings,
  },
  { title: 'API server', about: '`apiserver/main.ts`', schema: ApiServerSettings },
  { title: 'Controllers', about: '`controllers/main.ts`', schema: ControllersSettings },
  { title: 'Node agent', about: '`agents/node/main.ts`', schema: NodeAgentSettings },
  { title: 'Migrations', about: '`db/main.ts`', schema: MigrationsSettings },
  { title: 'Staff commands', about: '`npm run staff`', schema: StaffSettings },
  {
    title: 'Host of control planes in pods',
    about: '`hosting/pods/main.ts`',
    schema: ControlPlanesHostSettings,
  },
  { title: 'CSI driver, controller', about: '`addons/csi/main.ts controller`', schema: CsiControllerSettings },
  { title: 'CSI driver, node', about: '`addons/csi/main.ts node`', schema: CsiNodeSettings },
  { title: 'Cloud controller', about: '`addons/cloud/main.ts`', schema: CloudControllerSettings },
  { title: 'Embedded PostgreSQL', about: OF_NPM_START, schema: PostgresSettings },
  { title: 'Embedded Kubernetes API', about: OF_NPM_START, schema: KubernetesSettings },
  { title: 'Object storage', about: OF_NPM_START, schema: ObjectStorageSettings },
  { title: 'Object storage, front end', about: 'Object storage starts it.', schema: ObjectInterfaceSettings },
  { title: 'Control planes as processes', about: OF_NPM_START, schema: ControlPlanesSettings },
  { title: 'Network', about: OF_NPM_START, schema: NetworkSettings },
  { title: 'Network, forwarder', about: 'The network starts it.', schema: ForwarderSettings },
  { title: 'FAKE payment processor', about: OF_NPM_START, schema: FakePaymentsSettings },
]

const HEAD = `# Settings

<!-- Generated from the settings of the processes by \`npm run generate\`; never edited by hand. -->

Each process reads its settings once, when it starts. When one is missing or wrong, the process names it and stops.

- You set variables of the environment, as listed here. The Helm charts set them from their values. A variable
  that is set but empty is refused, unless it is a list. A process ignores variables that are not its own.
- A process that starts another one hands the settings over as one JSON object in \`${SETTINGS_VARIABLE}\`, by field.
  Then no other variable of these lists is read, and a field that the process does not have is refused.

Secrets are in files or in the environment of the process, never in its arguments. The variables of OpenTelemetry
(\`OTEL_…\`) and of proxies (\`HTTPS_PROXY\`, \`NO_PROXY\`) work as everywhere. \`SVCCLOUD_TOOLS\` names the folder of
programs that were built from source.
`

/** The page. Throws for a field without a description. */
export const settingsPage = (): string => [HEAD, ...PROCESSES.map(sectionOf)].join('\n')

const cell = (text: string): string => text.replaceAll('|', '\\|')
const code = (text: string): string => `\`${cell(text)}\``

function sectionOf({ title, about, schema }: ProcessSettings): string {
  const rows = Object.entries(schema.shape).map(([field, type]) => {
    const { description } = z.globalRegistry.get(type) ?? {}
    if (!description) throw new Error(`${title}: ${field} has no description`)
    const names = variablesOf(schema, field).map(code).join(', ')
    return `| ${names} | ${code(field)} | ${standardOf(type)} | ${cell(description)} |`
  })
  return [
    `## ${title}`,
    '',
    ...(schema === StartSettings ? [about, '', ...passedOnLines()] : [about]),
    '',
    '| Variable | Field | Default | Meaning |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}

/** The value without the setting. */
function standardOf(type: z.core.$ZodType): string {
  if (type instanceof z.ZodPrefault) return code(String(type.def.defaultValue))
  const { success, data } = z.safeParse(type, undefined)
  if (!success) return 'required'
  const text = typeof data === 'object' || data === undefined ? '' : String(data)
  return text === '' ? '' : code(text)
}

function passedOnLines(): readonly string[] {
  const listed = (fields: readonly string[]) => fields.map((field) => `\n  ${code(variableOf(field))}`).join(',')
  return [
    `- To the API server:${listed([...PASSED_ON.apiserver, ...PAYMENTS_PASSED_ON])}.`,
    `- To the controllers:${listed([...PASSED_ON.controllers, 'stripeUrl', 'stripeKeyFile'])}.`,
    `- To node agents:${listed(PASSED_ON.agent)}.`,
    `- To each other component:${listed(PASSED_ON.others)}.`,
  ]
}
