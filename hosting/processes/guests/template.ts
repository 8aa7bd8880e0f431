/** The state of a guest that has booted and done nothing yet. It is created once for each image, and every guest starts
 *  from it. It contains no cluster and no secret. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, chown, copyFile, link, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { runInGuest } from '../../../agents/node/guest-agent/run-in-guest.ts'
import type { TemplateStore } from '../../../agents/node/images/template-store.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { readLines } from '../../../kit/http/bounded.ts'
import { environment, isRoot } from '../../../kit/sys/process.ts'
import { tied } from '../../../embedded/kit/daemon.ts'
import { GUEST_FILES, guestCommand, type GuestSize, userIdOf } from './machine.ts'
import { isThere } from '../../../kit/sys/is-there.ts'

const run = promisify(execFile)

const IMAGE = 'kubernetes-node'
const DISK = '8G'
const BOOT_MILLISECONDS = 600_000
const POLL_MILLISECONDS = 500
const READABLE = 0o644
/** Loads programs into memory before anybody waits for them. */
const WARM_UP =
  'cat /opt/kubernetes/*/* /opt/kubernetes/* /usr/bin/containerd* /usr/sbin/runc /usr/lib/cni/* > /dev/null 2>&1; sync'

export interface GuestTemplate {
  readonly folder: string
  readonly commandLine: string
  readonly hasKvm: boolean
}

export interface TemplatesOptions {
  /** Folder of the templates. */
  readonly folder: string
  readonly images: Pick<TemplateStore, 'newest'>
  readonly size: GuestSize
  /** Uses the machine's hardware virtualization; the user of guests needs access to it. */
  readonly hasKvm: boolean
  readonly clock: Clock
  readonly log: Logger
}

export class GuestTemplates {
  readonly #options: TemplatesOptions
  #making: Promise<GuestTemplate> | undefined
  #template: GuestTemplate | undefined
  #child: ChildProcess | undefined
  readonly #stopping = new AbortController()

  constructor(options: TemplatesOptions) {
    this.#options = options
  }

  /** Why no template is possible, for people; empty when it is possible. */
  async obstacle(): Promise<string> {
    for (const program of ['qemu-system-x86_64', 'qemu-img', 'socat', 'setpriv'])
      if (!(await isInstalled(program))) return `${program} is not installed`
    const state = await this.#options.images.newest(IMAGE)
    return state.is === 'ready' ? '' : `the image of nodes is not there: sudo npm run image:kubernetes`
  }

  /** Undefined while it is being created, which takes minutes without KVM. Throws when the creation failed. */
  async find(): Promise<GuestTemplate | undefined> {
    if (this.#template !== undefined) return this.#template
    this.#making ??= this.#make()
    const making = this.#making
    making.catch(() => undefined) // the next caller gets the error
    const soon = this.#options.clock.sleep(POLL_MILLISECONDS)
    try {
      this.#template = await Promise.race([making, soon.then(() => undefined)])
      return this.#template
    } catch (error) {
      this.#making = undefined
      throw error
    }
  }

  stop(): void {
    this.#stopping.abort()
    this.#child?.kill('SIGKILL')
  }

  async #make(): Promise<GuestTemplate> {
    const { folder, images, size, hasKvm, log } = this.#options
    const state = await images.newest(IMAGE)
    if (state.is !== 'ready') throw new Error('the image of nodes is not there')
    const { boot, disk, version } = state.image
    if (boot === undefined || disk === undefined) throw new Error('the image of nodes has no kernel')
    const { stdout } = await run('qemu-system-x86_64', ['--version'])
    const key = createHash('sha256')
      .update(JSON.stringify([version, hasKvm, size, stdout, WARM_UP, DISK]))
      .digest('hex')
    const at = join(folder, key.slice(0, 16))
    const template = { folder: at, commandLine: boot.commandLine, hasKvm }
    if (await isThere(join(at, GUEST_FILES.state))) return template
    for (const name of await readdir(folder).catch(() => [])) await rm(join(folder, name), { recursive: true })
    const work = `${at}.new`
    await mkdir(work, { recursive: true, mode: 0o700 })
    await linkOrCopy(disk, join(work, GUEST_FILES.base))
    await linkOrCopy(boot.kernel, join(work, GUEST_FILES.kernel))
    await linkOrCopy(boot.initialRamdisk, join(work, GUEST_FILES.initialRamdisk))
    await makeDisk(work, GUEST_FILES.base, DISK)
    await handOver(work, userIdOf(0))
    log.info('making the template of guests', { version })
    await this.#save({ ...template, folder: work })
    await rename(join(work, GUEST_FILES.disk), join(work, GUEST_FILES.warm))
    for (const name of [GUEST_FILES.warm, GUEST_FILES.state]) await chmod(join(work, name), READABLE)
    await rename(work, at)
    log.info('made the template of guests', { version })
    return template
  }

  /** Boots, waits until it is warm, and saves its state. */
  async #save(template: GuestTemplate): Promise<void> {
    const { size, clock } = this.#options
    const { folder } = template
    const [program = '', ...words] = tied(guestCommand({ ...template, ...size, userId: userIdOf(0) }))
    const child = spawn(program, words, {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { PATH: environment()['PATH'] },
    })
    this.#child = child
    const over = new AbortController()
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    void ended.then(() => over.abort())
    try {
      const signal = AbortSignal.any([this.#stopping.signal, over.signal])
      await inGuest(join(folder, GUEST_FILES.agent), WARM_UP, { clock, signal, milliseconds: BOOT_MILLISECONDS })
      await saveState(join(folder, GUEST_FILES.monitor), clock)
    } finally {
      child.kill('SIGKILL')
      await ended
      this.#child = undefined
    }
  }
}

/** Creates the folder of a guest, with a disk that is backed by the template's. Complete or absent. */
export async function prepareGuest(folder: string, template: GuestTemplate, userId: number): Promise<void> {
  if (await isThere(folder)) return
  const work = `${folder}.new`
  await rm(work, { recursive: true, force: true })
  await mkdir(work, { mode: 0o700 })
  const { base, warm, state, kernel, initialRamdisk } = GUEST_FILES
  for (const name of [base, warm, state, kernel, initialRamdisk])
    await linkOrCopy(join(template.folder, name), join(work, name))
  await makeDisk(work, warm)
  await handOver(work, userId)
  await rename(work, folder)
}

/** Retries until the agent of the guest answers. Throws when it does not answer in time, and after the signal. */
export async function inGuest(
  socket: string,
  script: string,
  {
    clock,
    milliseconds,
    signal,
  }: { readonly clock: Clock; readonly milliseconds: number; readonly signal: AbortSignal },
): Promise<void> {
  const end = clock.monotonicMilliseconds() + milliseconds
  for (;;) {
    try {
      const timeoutMilliseconds = Math.max(1, end - clock.monotonicMilliseconds())
      await runInGuest({ socket, clock, timeoutMilliseconds }, { path: '/bin/sh', input: Buffer.from(script) })
      return
    } catch (error) {
      if (clock.monotonicMilliseconds() > end || signal.aborted) throw error
      await clock.sleep(POLL_MILLISECONDS, signal)
    }
  }
}

const makeDisk = (folder: string, backing: string, size?: string): Promise<unknown> =>
  run(
    'qemu-img',
    [
      'create',
      '-q',
      '-f',
      'qcow2',
      '-F',
      'qcow2',
      '-b',
      backing,
      GUEST_FILES.disk,
      ...(size === undefined ? [] : [size]),
    ],
    { cwd: folder },
  )

/** Gives the folder and its files to the guest's user. */
async function handOver(folder: string, userId: number): Promise<void> {
  if (!isRoot()) return
  for (const path of [folder, join(folder, GUEST_FILES.disk)]) await chown(path, userId, userId)
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  await rm(to, { force: true })
  await link(from, to).catch(() => copyFile(from, to)) // for another file system
}

const isInstalled = (program: string): Promise<boolean> =>
  run('/bin/sh', ['-c', 'command -v "$0"', program]).then(
    () => true,
    () => false,
  )

/** Limit of one answer of the monitor. */
const LINE_BYTES_MAXIMUM = 1024 ** 2

/** Writes the state of the guest to its folder. The guest stays paused. */
async function saveState(socket: string, clock: Clock): Promise<void> {
  const connection = connect(socket)
  const answers = readLines(connection, LINE_BYTES_MAXIMUM)
  const ask = async (execute: string, words: object = {}): Promise<{ readonly status?: string }> => {
    connection.write(`${JSON.stringify({ execute, arguments: words })}\n`)
    for (;;) {
      const { value, done } = await answers.next()
      if (done === true) throw new Error('the monitor of the guest has ended')
      const answer = JSON.parse(value)
      if ('error' in answer) throw new Error(`${execute}: ${JSON.stringify(answer.error).slice(0, 200)}`)
      if ('return' in answer) return answer.return
    }
  }
  try {
    await ask('qmp_capabilities')
    await ask('migrate-set-parameters', { 'max-bandwidth': 10 * 1024 ** 3 })
    await ask('migrate', { uri: `exec:cat > ${GUEST_FILES.state}` })
    for (;;) {
      const { status } = await ask('query-migrate')
      if (status === 'completed') return
      if (status === 'failed') throw new Error('the state of the guest could not be saved')
      await clock.sleep(POLL_MILLISECONDS)
    }
  } finally {
    connection.destroy()
  }
}
