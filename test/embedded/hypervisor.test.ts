import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isRoot, nodeBinary } from '../../kit/sys/process.ts'

const run = promisify(execFile)
const MODULE = join(import.meta.dirname, '../../embedded/hypervisor.ts')

const mayInstallHere = isRoot() && existsSync('/etc/debian_version')

let bin: string

beforeEach(async () => void (bin = await mkdtemp(join(tmpdir(), 'svccloud-bin-'))))
afterEach(() => rm(bin, { recursive: true, force: true }))

async function program(name: string, script: string): Promise<void> {
  await writeFile(join(bin, name), `#!/bin/sh\n${script}\n`)
  await chmod(join(bin, name), 0o755)
}

interface Outcome {
  readonly answer: string
  readonly printed: readonly string[]
}

/** What is decided on a machine whose only programs are those in `bin`. */
async function ensured(hypervisor: string, mayInstall: boolean): Promise<Outcome> {
  const source = `
    const { ensureHypervisor } = await import(${JSON.stringify(MODULE)})
    const printed = []
    const needs = ${JSON.stringify({ hypervisor, mayInstall })}
    const answer = await ensureHypervisor({ ...needs, print: (line) => printed.push(line) })
      .catch((error) => 'refused: ' + error.message)
    console.log(JSON.stringify({ answer, printed }))`
  const { stdout } = await run(nodeBinary(), ['--input-type=module', '-e', source], { env: { PATH: bin } })
  return JSON.parse(stdout) as Outcome // printed above
}

const asked = async () => (await readFile(join(bin, 'asked'), 'utf8').catch(() => '')).trim().split('\n')
/** An apt that brings the programs of the packages, once it has fetched its lists. */
const installer = (folder: string) => `
  echo "$@" >> "${folder}/asked"
  case "$1" in
    update) /usr/bin/touch "${folder}/lists" ;;
    install) [ -e "${folder}/lists" ] || exit 100
      for name in qemu-system-x86_64 qemu-img; do
        echo '#!/bin/sh' > "${folder}/$name"
        /bin/chmod 755 "${folder}/$name"
      done ;;
  esac`

describe('QEMU that is there', () => {
  beforeEach(async () => {
    await program('qemu-system-x86_64', 'true')
    await program('qemu-img', 'true')
  })

  it.each(['auto', 'qemu'])('is used: %s', async (hypervisor) =>
    expect(await ensured(hypervisor, true)).toEqual({ answer: hypervisor, printed: [] }),
  )

  it('is left alone when guests are to be simulated, and that is printed', async () => {
    expect(await ensured('simulated', true)).toEqual({
      answer: 'simulated',
      printed: [expect.stringMatching(/^WARNING: guests are simulated/)],
    })
  })
})

describe('QEMU that is missing', () => {
  it('is never installed with --no-install: guests are simulated, loudly', async () => {
    await program('apt-get', installer(bin))
    expect(await ensured('auto', false)).toEqual({
      answer: 'simulated',
      printed: [
        expect.stringMatching(
          /^WARNING: .*SIMULATED.*apt-get install --no-install-recommends qemu-system-x86 qemu-utils$/,
        ),
      ],
    })
    expect(await asked()).toEqual([''])
  })

  it('is refused in one line when it was demanded', async () => {
    expect((await ensured('qemu', false)).answer).toBe(
      'refused: QEMU is needed and not complete. Install what is missing: apt-get install ' +
        '--no-install-recommends qemu-system-x86 qemu-utils',
    )
  })

  it.runIf(mayInstallHere)('is installed without recommends by root on Debian', async () => {
    await program('apt-get', installer(bin))
    expect(await ensured('auto', true)).toEqual({
      answer: 'auto',
      printed: [expect.stringMatching(/^Installing qemu-system-x86 qemu-utils/)],
    })
    expect(await asked()).toEqual(['update -q', 'install -y -q --no-install-recommends qemu-system-x86 qemu-utils'])
  })

  it.runIf(mayInstallHere)('is simulated when it cannot be installed', async () => {
    await program('apt-get', 'exit 100')
    expect((await ensured('auto', true)).printed.at(-1)).toMatch(/SIMULATED/)
  })
})
