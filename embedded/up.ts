/** `npm start`: a complete cloud on this machine. Parses the command line, prepares the folder and the hypervisor,
 *  starts the components, prints where everything is, and stops them on request. Guests outlive it, and the next start
 *  finds them. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { systemClock } from '../kit/sys/clock.ts'
import {
  environment,
  exitProcess,
  isRoot,
  onFatal,
  printErrorLine,
  printLine,
  processArguments,
  processId,
  stopSignal,
  surviveFailedPrints,
  workingDirectory,
} from '../kit/sys/process.ts'
import { systemRandom } from '../kit/sys/random.ts'
import { settingsIn, SettingsRefused } from '../kit/sys/settings.ts'
import { Cloud, type Endpoints } from './cloud.ts'
import { requireFormat } from './format.ts'
import { lockDataFolder, prepareDataFolder, StartRefused } from './kit/data-folder.ts'

import { ensureHypervisor } from './hypervisor.ts'
import { chooseNetwork } from './ovn/choose.ts'
import { setTestClock } from './test-clock.ts'
import { CLUSTERS } from '../integrations/control-planes/programs.ts'
import { kubernetesObstacle, missingKubernetes } from '../hosting/processes/programs.ts'
import { BUILD_COMMAND } from './object-storage/program.ts'
import type { PortalDecision } from './portal.ts'
import { missingImages } from './missing-images.ts'
import { StartSettings } from './start-settings.ts'
import { helpText, type Options, parseOptions, UsageError, warningsOf } from './options.ts'

const PROJECT = join(import.meta.dirname, '..')
/** The CLI's default address. */
const DEFAULT_API_URL = 'http://127.0.0.1:8080'
const USAGE_EXIT_CODE = 2
const REFUSED_EXIT_CODE = 1

/** Paths are relative to the folder in which the command was typed; npm changes to the project's folder. */
const fromWhereTyped = (path: string): string => resolve(environment()['INIT_CWD'] ?? workingDirectory(), path)

const rootOf = async (options: Options): Promise<string> =>
  options.isEphemeral
    ? mkdtemp(join(tmpdir(), 'svccloud-'))
    : options.data === undefined
      ? join(PROJECT, '.svccloud')
      : fromWhereTyped(options.data)

const versionOf = async (): Promise<string> =>
  (JSON.parse(await readFile(join(PROJECT, 'package.json'), 'utf8')) as { version: string }).version // our own file

const aborted = (signal: AbortSignal): Promise<'stop'> =>
  new Promise((resolve) =>
    signal.aborted ? resolve('stop') : signal.addEventListener('abort', () => resolve('stop'), { once: true }),
  )

interface Welcome {
  readonly endpoints: Endpoints
  readonly root: string
  readonly images: string
  readonly options: Options
  readonly settings: StartSettings
  readonly serversAt: string | undefined
  readonly isolation: string | undefined
  readonly portal: PortalDecision
}

/** Features that are unavailable here, and why. */
async function kubernetesOff({
  has_control_planes: hasAny,
}: Endpoints): Promise<readonly (readonly [string, string])[]> {
  const missing = await missingKubernetes()
  const obstacle = hasAny || missing[0]?.[0] === CLUSTERS ? undefined : await kubernetesObstacle()
  return obstacle === undefined ? missing : [[CLUSTERS, obstacle], ...missing]
}

async function printWelcome({
  endpoints,
  root,
  images,
  options,
  settings,
  serversAt,
  isolation,
  portal,
}: Welcome): Promise<void> {
  const kubeconfig = options.kubeconfig === undefined ? 'kubeconfig' : 'kubeconfig (yours)'
  const lines: readonly (readonly [string, string])[] = [
    [
      'portal',
      'directory' in portal ? (environment()['SVCCLOUD_PUBLIC_URL'] ?? endpoints.api_url) : `off: ${portal.obstacle}`,
    ],
    ['API', endpoints.api_url],
    ['API documentation', `${endpoints.api_url}/docs`],
    ['operator listener', `${endpoints.operator_url}${'directory' in portal ? ' (API and portal of staff)' : ''}`],
    ['mails', settings.smtpUrl === undefined ? `${endpoints.mail_directory}/*.eml` : 'sent by SVCCLOUD_SMTP_URL'],
    ...(endpoints.fake_payments_url === null
      ? []
      : [['FAKE payments', `${endpoints.fake_payments_url} (no money moves)`] as const]),
    ...(endpoints.test_clock === null ? [] : [['TEST CLOCK', endpoints.test_clock] as const]),
    [kubeconfig, endpoints.kubeconfig],
    ...(serversAt === undefined ? [] : [['servers', serversAt] as const]),
    ...(await missingImages(settings.imageCache ?? images)),
    endpoints.object_storage_url === null
      ? ['object storage', `off until: ${BUILD_COMMAND}, and another start`]
      : ['object storage', `${endpoints.object_storage_url} (S3; its authority: ${root}/object-storage/ca.crt)`],
    ...(isolation === undefined ? [] : [['', isolation] as const]),
    ...(await kubernetesOff(endpoints)).map(([name, why]) => [name, `off: ${why}`] as const),
    ['data', options.isEphemeral ? `${root} (removed at the end)` : root],
  ]
  printLine('')
  for (const [name, value] of lines) printLine(`  ${name.padEnd(20)}${value}`)
  printLine('')
  printLine('Next, in another terminal:')
  const url = endpoints.api_url === DEFAULT_API_URL ? '' : ` --url ${endpoints.api_url}`
  const mails = settings.smtpUrl === undefined ? ` --mails ${endpoints.mail_directory}` : ''
  printLine(`  npx svccloud signup${url}${mails}`)
  printLine(`  npx svccloud login${url}`)
  printLine('  npx svccloud ssh-key create --name mine --public-key @$HOME/.ssh/id_ed25519.pub')
  printLine('  npx svccloud server create --zone eu-1a --hostname hello --plan tiny --template tiny-linux')
  printLine('  npx svccloud ssh hello')
  printLine(`  KUBECONFIG=${endpoints.kubeconfig} kubectl get nodes.svccloud.dev`)
  printLine('')
  printLine('Ctrl-C stops it.')
}

async function run(options: Options, settings: StartSettings, stop: AbortSignal): Promise<void> {
  const root = await rootOf(options)
  await requireFormat(root)
  const folder = await prepareDataFolder(root)
  const lock = lockDataFolder(root)
  const print = printLine
  let cloud: Cloud | undefined
  try {
    const hypervisor = await ensureHypervisor({ hypervisor: options.hypervisor, mayInstall: options.mayInstall, print })
    const network = await chooseNetwork({ ...options, settings, hypervisor, folder, hasRoot: isRoot(), print })
    print(`Starting svccloud in ${root} ...`)
    for (const warning of warningsOf(options)) print(warning)
    cloud = new Cloud({
      options,
      settings,
      hypervisor,
      network,
      aheadMilliseconds: await setTestClock(folder.testClockFile, options.testClock, systemClock.now()),
      folder,
      version: await versionOf(),
      pid: processId(),
      clock: systemClock,
      random: systemRandom,
      print,
    })
    const outcome = await Promise.race([cloud.start(), aborted(stop)])
    if (outcome !== 'stop') {
      const { serversAt, isolation, portal } = cloud
      const places = { endpoints: outcome, root, images: folder.images }
      await printWelcome({ ...places, options, settings, serversAt, isolation, portal })
      await aborted(stop)
    }
    print('Stopping ...')
  } finally {
    await cloud?.stop()
    lock.release()
    if (options.isEphemeral) await rm(root, { recursive: true, force: true })
  }
}

/** Resolves only when nothing is left running; exits the process. */
export async function main(): Promise<void> {
  surviveFailedPrints()
  onFatal((error) =>
    printErrorLine(`svccloud failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`),
  )
  const stop = stopSignal()
  try {
    const options = parseOptions(processArguments(), environment())
    if (options === 'help') printLine(helpText())
    else await run(options, settingsIn(StartSettings, environment()), stop)
    exitProcess(0)
  } catch (error) {
    const isUsage = error instanceof UsageError || error instanceof SettingsRefused
    if (!(isUsage || error instanceof StartRefused)) throw error
    printErrorLine(error.message)
    exitProcess(isUsage ? USAGE_EXIT_CODE : REFUSED_EXIT_CODE)
  }
}
