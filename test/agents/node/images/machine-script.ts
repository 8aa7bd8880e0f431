/** The script of managed machines in a network namespace of this host, with a folder of its own instead of a guest:
 *  what it starts are the real programs. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MACHINE_SCRIPT_FILE } from '../../../../agents/node/images/managed/recipe.ts'
import { runProgram } from '../../../../agents/node/run-program.ts'
import { environment } from '../../../../kit/sys/process.ts'
import { MachineAnswer, type MachineDocument } from '../../../../resources/managed-machine/index.ts'

export interface MachineInNamespace {
  readonly folder: string
  /** Runs a program in the namespace; what it writes. Rejects when it fails. */
  run(program: string, ...input: string[]): Promise<string>
  apply(document: MachineDocument): Promise<MachineAnswer>
  ask(what: 'status' | 'start' | 'stop'): Promise<MachineAnswer>
  close(): Promise<void>
}

/** Begins nothing; the namespace is there already. */
export async function openMachineIn(namespace: string): Promise<MachineInNamespace> {
  const folder = await mkdtemp(join(tmpdir(), 'machine-'))
  const env = {
    ...environment(),
    MACHINE_ROOT: folder,
    MACHINE_SERVICES: 'direct',
    MACHINE_START_SECONDS: '10',
    MACHINE_BASTION_USER: 'root',
  }
  const call = async (request: object): Promise<MachineAnswer> => {
    const child = spawn('ip', ['netns', 'exec', namespace, 'python3', MACHINE_SCRIPT_FILE], { env })
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
    run: (program, ...input) => runProgram('ip', ['netns', 'exec', namespace, program, ...input]),
    apply: (document) => call({ do: 'apply', document }),
    ask: (what) => call({ do: what }),
    async close() {
      await call({ do: 'stop' })
      await rm(folder, { recursive: true, force: true })
    },
  }
}
