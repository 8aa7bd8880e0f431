/** The clients for Python and Go as their users get them: types and tests of the layer, the packages, and the example
 *  and the guide against the running product. */
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { environment } from '../../kit/sys/process.ts'
import { runIn, SDK_FOLDER } from '../../tools/sdk/main.ts'
import { ROOT, scriptOf } from '../docs/blocks.ts'

const PYTHON = join(SDK_FOLDER, 'python')
const GO = join(SDK_FOLDER, 'go')
const TOOLS = join(SDK_FOLDER, 'tools/bin')
const access = () => ({ SVCCLOUD_URL: inject('sdkUrl') ?? '', SVCCLOUD_TOKEN: inject('sdkToken') ?? '' })

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-sdk-user-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** What is left of an example. */
async function namesOf(...nouns: readonly string[]): Promise<readonly string[]> {
  const { SVCCLOUD_URL, SVCCLOUD_TOKEN } = access()
  const lists = nouns.map(async (noun) => {
    const answer = await fetch(`${SVCCLOUD_URL}/v1/${noun}`, { headers: { authorization: `Bearer ${SVCCLOUD_TOKEN}` } })
    // lists of the contract
    return ((await answer.json()) as { items: readonly { name?: string; hostname?: string }[] }).items
  })
  return (await Promise.all(lists)).flat().map(({ name, hostname }) => name ?? hostname ?? '')
}
const LEFTOVERS = ['servers', 'networks', 'ssh-keys'] as const

describe('the client for Python', () => {
  let python: string

  beforeAll(async () => {
    // what the wheel needs comes with it
    const [wheel = ''] = (await readdir(join(PYTHON, 'dist'))).filter((name) => name.endsWith('.whl'))
    const user = join(folder, 'python')
    await runIn(folder, 'python3', ['-m', 'venv', user])
    await runIn(folder, join(user, 'bin/pip'), ['install', '--quiet', join(PYTHON, 'dist', wheel)])
    python = join(user, 'bin/python')
  })

  test('has types that are complete', async () => {
    const files = ['src/svccloud/_layer.py', 'src/svccloud/__init__.py', 'tests', 'examples']
    expect(await runIn(PYTHON, join(TOOLS, 'mypy'), ['--strict', ...files])).toContain('Success')
    await runIn(PYTHON, join(TOOLS, 'ruff'), ['format', '--check', ...files])
    await runIn(PYTHON, join(TOOLS, 'ruff'), ['check', ...files])
  })

  test('survives what a service and a network do', async () => {
    expect(await runIn(PYTHON, python, ['-m', 'unittest', 'discover', '-s', 'tests'])).toContain('OK')
  })

  test('comes as a source distribution as well', async () => {
    const packages = await readdir(join(PYTHON, 'dist'))
    expect(packages.map((name) => name.replace(/.*(\.whl|\.tar\.gz)$/, '$1')).toSorted()).toEqual(['.tar.gz', '.whl'])
  })

  test('makes, lists and deletes three servers', async () => {
    const output = await runIn(folder, python, [join(PYTHON, 'examples/three_servers.py')], access())
    for (const number of [0, 1, 2]) expect(output).toContain(`python-${number} started`)
    expect(await namesOf(...LEFTOVERS)).not.toEqual(expect.arrayContaining([expect.stringMatching(/^python/)]))
  })
})

describe('the client for Go', () => {
  test('has nothing that go vet finds', async () => {
    await runIn(GO, 'go', ['vet', './...'])
    expect(await runIn(GO, 'gofmt', ['-l', '.'])).toBe('')
  })

  test('survives what a service and a network do', async () => {
    expect(await runIn(GO, 'go', ['test', '.'])).toContain('ok')
  })

  test('makes, lists and deletes three servers', async () => {
    const output = await runIn(GO, 'go', ['run', './examples/three-servers'], access())
    for (const number of [0, 1, 2]) expect(output).toContain(`go-${number} started`)
    expect(await namesOf(...LEFTOVERS)).not.toEqual(expect.arrayContaining([expect.stringMatching(/^go/)]))
  })
})

test('the guide says what works', async () => {
  const script = await scriptOf('docs/sdks.md')
  await writeFile(join(folder, 'guide.sh'), `npm() { command npm --prefix ${ROOT} "$@"; }\n${script}`)
  const { PATH, HOME } = environment()
  const { SVCCLOUD_URL, SVCCLOUD_TOKEN } = access()
  const variables = [`PATH=${PATH}`, `HOME=${HOME}`, `API=${SVCCLOUD_URL}`, `TOKEN=${SVCCLOUD_TOKEN}`]
  const output = await runIn(folder, 'env', ['-i', ...variables, 'bash', '-eu', 'guide.sh'])
  expect(output).toContain('nothing is left')
})
