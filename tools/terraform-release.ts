/** Builds a release of the provider for Terraform and OpenTofu: a zip for each platform, their sums and the signature
 *  of these, the manifest, and its documents. The folder is a mirror for both programs, and the leaf of it what the API
 *  server serves as a registry.
 *
 *  Command line: `npm run build:terraform-release -- --key FILE`, with a private key of GPG without a passphrase. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { VERSION } from '../domain/version.ts'
import { answerHelp } from '../kit/sys/help.ts'
import { environment, printErrorLine, printLine, processArguments, setExitCode } from '../kit/sys/process.ts'
import { PROVIDER_FOLDER, runGo } from './terraform.ts'
import { zipOf } from './zip.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '..')
const NAME = 'terraform-provider-svccloud'
const PLATFORMS = ['linux_amd64', 'linux_arm64', 'darwin_amd64', 'darwin_arm64'] as const
type Platform = (typeof PLATFORMS)[number]
/** Of the plugin protocol: what the provider needs, which is not the newest that it speaks. */
const MANIFEST = { version: 1, metadata: { protocol_versions: ['6.0'] } }

interface ReleaseOptions {
  /** Private key, as GPG exports it. */
  readonly key: string
  readonly folder: string
  /** Registry whose name is in the addresses of configurations. */
  readonly host: string
  readonly platforms?: readonly Platform[]
}

async function build(platform: Platform, program: string): Promise<void> {
  const [GOOS = '', GOARCH = ''] = platform.split('_')
  await runGo(['build', '-trimpath', '-ldflags', `-s -w -X main.version=${VERSION}`, '-o', program, '.'], {
    GOOS,
    GOARCH,
  })
}

/** Signs the file beside it, and writes the public key as the registry protocol has it. */
async function sign(file: string, { key, leaf }: { readonly key: string; readonly leaf: string }): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), 'svccloud-gpg-'))
  const gpg = (...flags: readonly string[]) =>
    run('gpg', ['--homedir', home, '--batch', '--no-tty', ...flags], { env: { ...environment(), GNUPGHOME: home } })
  try {
    await chmod(home, 0o700)
    await gpg('--import', key)
    const { stdout } = await gpg('--list-secret-keys', '--with-colons')
    const id = stdout
      .split('\n')
      .find((line) => line.startsWith('sec:'))
      ?.split(':')[4]
    if (id === undefined) throw new Error(`${key} has no private key`)
    await gpg('--yes', '--local-user', id, '--output', `${file}.sig`, '--detach-sign', file)
    const { stdout: armored } = await gpg('--armor', '--export', id)
    await writeFile(join(leaf, 'signing-key.json'), `${JSON.stringify({ key_id: id, ascii_armor: armored })}\n`)
  } finally {
    await run('gpgconf', ['--homedir', home, '--kill', 'all']).catch(() => undefined)
    await rm(home, { recursive: true, force: true })
  }
}

/** Answers the folder with the files. */
export async function release({ key, folder, host, platforms = PLATFORMS }: ReleaseOptions): Promise<string> {
  const leaf = join(folder, host, 'svccloud/svccloud')
  await mkdir(leaf, { recursive: true })
  const building = await mkdtemp(join(tmpdir(), 'svccloud-provider-'))
  try {
    const sums: string[] = []
    const add = async (end: string, content: Buffer) => {
      const name = `${NAME}_${VERSION}_${end}`
      await writeFile(join(leaf, name), content)
      sums.push(`${createHash('sha256').update(content).digest('hex')}  ${name}\n`)
    }
    for (const platform of platforms) {
      const program = join(building, platform)
      await build(platform, program)
      await add(`${platform}.zip`, zipOf(`${NAME}_v${VERSION}`, await readFile(program)))
    }
    await add('manifest.json', Buffer.from(`${JSON.stringify(MANIFEST)}\n`))
    const file = join(leaf, `${NAME}_${VERSION}_SHA256SUMS`)
    await writeFile(file, sums.join(''))
    await sign(file, { key, leaf })
    await writeDocuments(join(folder, 'docs'))
  } finally {
    await rm(building, { recursive: true, force: true })
  }
  return leaf
}

/** Pages as registries show them: one for each resource, data source, ephemeral resource, list and action. */
async function writeDocuments(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  await runGo([
    'run',
    './documents',
    join(ROOT, 'terraform/definitions.json'),
    join(ROOT, 'examples/terraform'),
    folder,
  ])
  await copyFile(join(ROOT, 'docs/terraform.md'), join(folder, 'index.md'))
}

if (import.meta.main) {
  answerHelp(import.meta.filename)
  const { values } = parseArgs({
    args: [...processArguments()],
    options: {
      key: { type: 'string' },
      folder: { type: 'string', default: join(PROVIDER_FOLDER, 'release') },
      host: { type: 'string', default: 'registry.terraform.io' },
    },
  })
  if (values.key === undefined) {
    printErrorLine('usage: npm run build:terraform-release -- --key FILE [--folder FOLDER] [--host NAME]')
    setExitCode(2)
  } else {
    printLine(await release({ key: resolve(values.key), folder: resolve(values.folder), host: values.host }))
  }
}
