/** Capabilities of QEMU on this host. An open /dev/kvm is not enough, because some kernels offer it and then emulate
 *  guest kernels instruction by instruction. So a processor flag and a trial boot decide. The result is cached while
 *  the host and QEMU stay the same. */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../../../../kit/sys/clock.ts'
import { writeDurably } from '../../../../kit/sys/durable-file.ts'
import { hasVirtualizationFlag } from '../../host.ts'
import { runProgram } from '../../run-program.ts'
import { CX16_OFF, type QemuMachine } from './qemu-arguments.ts'

export const QEMU_BINARY = 'qemu-system-x86_64'
const TRIAL_MILLISECONDS = 5_000
const TRIAL_MARKER = 'svccloud'
/** Firmware refuses disks of a single sector. */
const TRIAL_DISK_BYTES = 1024 * 1024
/** Newest first. The first that this QEMU supports is used, so that hosts of mixed versions agree. */
const MACHINES = ['pc-q35-7.2', 'pc-q35-6.2', 'pc-q35-5.2'] as const
/** Before this version TCG gets the flags of cmpxchg16b wrong between several cores, and newer Linux guests panic. So
 *  the instruction is hidden from them. */
const TCG_MAXIMUM_CPU_VERSION = 8
const TCG_OLD_CPU = `qemu64${CX16_OFF}`

export interface ProbeOptions {
  /** File for the cached result. */
  readonly cacheFile: string
  readonly bootId: string
  readonly clock: Clock
}

/** The machine type for guests. Throws ProgramFailed when QEMU is missing or does not run. */
export async function probeQemu({ cacheFile, bootId, clock }: ProbeOptions): Promise<QemuMachine> {
  const version = /version (\S+)/.exec(await runProgram(QEMU_BINARY, ['--version']))?.[1] ?? 'unknown'
  const supported = await runProgram(QEMU_BINARY, ['-machine', 'help'])
  const machine = MACHINES.find((name) => supported.includes(`${name} `)) ?? 'q35'
  const tested = `${bootId} ${version}`
  const cached = await readFile(cacheFile, 'utf8').catch(() => '')
  let accelerator: QemuMachine['accelerator']
  if (cached === `${tested} kvm`) accelerator = 'kvm'
  else if (cached === `${tested} tcg`) accelerator = 'tcg'
  else {
    accelerator = (await hasVirtualizationFlag()) && (await bootsTrial('kvm', clock)) ? 'kvm' : 'tcg'
    await writeDurably(cacheFile, `${tested} ${accelerator}`)
  }
  const cpu =
    accelerator === 'kvm' ? 'host' : Number.parseInt(version, 10) >= TCG_MAXIMUM_CPU_VERSION ? 'max' : TCG_OLD_CPU
  return { accelerator, machine, cpu }
}

/** Returns whether a boot sector prints a marker on the serial line in time. */
export async function bootsTrial(accelerator: QemuMachine['accelerator'], clock: Clock): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-trial-'))
  try {
    await writeFile(join(folder, 'boot.img'), Buffer.concat([bootSector(TRIAL_MARKER), Buffer.alloc(TRIAL_DISK_BYTES)]))
    const child = spawn(
      QEMU_BINARY,
      [
        '-nodefaults',
        '-no-user-config',
        '-display',
        'none',
        '-machine',
        'q35',
        '-accel',
        accelerator,
        ...(accelerator === 'kvm' ? ['-cpu', 'host'] : []),
        '-m',
        '32',
        '-drive',
        `file=${join(folder, 'boot.img')},format=raw,if=virtio,readonly=on`,
        '-serial',
        'stdio',
      ],
      { stdio: ['ignore', 'pipe', 'ignore'] },
    )
    const printed = new Promise<boolean>((resolve) => {
      let text = ''
      child.stdout.on('data', (bytes: Buffer) => {
        text += bytes.toString('latin1')
        if (text.includes(TRIAL_MARKER)) resolve(true)
      })
      child.once('error', () => resolve(false))
      child.once('close', () => resolve(false))
    })
    const stopWaiting = new AbortController()
    const answer = await Promise.race([printed, clock.sleep(TRIAL_MILLISECONDS, stopWaiting.signal).then(() => false)])
    stopWaiting.abort()
    child.kill('SIGKILL')
    return answer
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** 16-bit code that writes the text to the first serial port and halts. */
export function bootSector(text: string): Buffer {
  const code = [
    0xfa,
    0xfc, // cli, cld
    0x31,
    0xc0,
    0x8e,
    0xd8, // ds = 0
    0xbe,
    0x17,
    0x7c, // si = the text, right behind the code
    0xba,
    0xf8,
    0x03, // dx = 0x3f8
    0xac, // next: al = [si++]
    0x84,
    0xc0, // test al, al
    0x74,
    0x03, // jz halt
    0xee, // out dx, al
    0xeb,
    0xf8, // jmp next
    0xf4,
    0xeb,
    0xfd, // halt: hlt, again
  ]
  const sector = Buffer.alloc(512)
  Buffer.from(code).copy(sector)
  sector.write(text, code.length, 'latin1')
  sector.writeUInt16LE(0xaa55, 510)
  return sector
}
