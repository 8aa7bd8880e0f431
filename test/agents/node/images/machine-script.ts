/** The script of managed machines on this host, in a separate folder instead of a guest, with what lies beside it in
 *  the image: what it starts are the real programs. */
import { spawn } from 'node:child_process'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { MACHINE_SCRIPT, managedSystem } from '../../../../agents/node/images/managed/recipe.ts'
import { runProgram } from '../../../../agents/node/run-program.ts'
import type { ManagedTemplate } from '../../../../domain/managed-machine/rules.ts'
import { environment } from '../../../../kit/sys/process.ts'
import { MachineAnswer, type MachineDocument } from '../../../../resources/managed-machine/index.ts'
import { PYTHON } from '../../../python.ts'

export interface MachineHere {
  readonly folder: string
  apply(document: MachineDocument): Promise<MachineAnswer>
  ask(what: 'status' | 'start' | 'stop'): Promise<MachineAnswer>
  close(): Promise<void>
}

export interface MachineInNamespace extends MachineHere {
  /** Runs a program in the namespace; what it writes. Rejects when it fails. */
  run(program: string, ...input: string[]): Promise<string>
}

interface MachineOptions {
  readonly template: ManagedTemplate
  /** What comes before the script. */
  readonly prefix?: readonly string[]
  /** Of its environment, besides. */
  readonly settings?: (folder: string) => Readonly<Record<string, string>>
}

/** Begins nothing. */
export async function openMachine({ template, prefix = [], settings }: MachineOptions): Promise<MachineHere> {
  const folder = await mkdtemp(join(tmpdir(), 'machine-'))
  await chmod(folder, 0o755)
  const { programs } = await managedSystem(template)
  for (const [path, text] of Object.entries(programs)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text, { mode: 0o755 })
  }
  const env = {
    ...environment(),
    PATH: [dirname(PYTHON), environment()['PATH']].join(delimiter),
    MACHINE_ROOT: folder,
    MACHINE_SERVICES: 'direct',
    MACHINE_START_SECONDS: '10',
    MACHINE_BASTION_USER: 'root',
    ...settings?.(folder),
  }
  const [program, ...words] = [...prefix, PYTHON, join(folder, MACHINE_SCRIPT)]
  const call = async (request: object): Promise<MachineAnswer> => {
    const child = spawn(program, words, { env })
    const [output, errors]: [Buffer[], Buffer[]] = [[], []]
    child.stdout.on('data', (bytes: Buffer) => output.push(bytes))
    child.stderr.on('data', (bytes: Buffer) => errors.push(bytes))
    const ended = new Promise((resolve) => child.once('close', resolve))
    child.stdin.end(JSON.stringify(request))
    await ended
    try {
      return MachineAnswer.parse(JSON.parse(Buffer.concat(output).toString()))
    } catch (cause) {
      throw new Error(`the script answers nothing: ${Buffer.concat(errors).toString()}`, { cause })
    }
  }
  return {
    folder,
    apply: (document) => call({ do: 'apply', document }),
    ask: (what) => call({ do: what }),
    async close() {
      await call({ do: 'stop' })
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Begins nothing; the namespace is there already. */
export async function openMachineIn(namespace: string): Promise<MachineInNamespace> {
  const inside = ['netns', 'exec', namespace]
  const machine = await openMachine({ template: 'managed-machine', prefix: ['ip', ...inside] })
  return { ...machine, run: (program, ...input) => runProgram('ip', [...inside, program, ...input]) }
}
