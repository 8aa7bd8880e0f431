/** A lock file that names its owner, so that two servers never write one folder. The lock of a dead process is taken over. */
import { readFileSync } from 'node:fs'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { processId, signalProcess } from '../../../kit/sys/process.ts'
import { newBase62, systemRandom } from '../../../kit/sys/random.ts'

const TAKE_MOST_ATTEMPTS = 5

/** The folder belongs to another process that is alive. */
export class FolderLocked extends Error {}

/** Takes the lock; the answer releases it. */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const path = join(folder, 'lock')
  const own = ownerText(processId())
  const candidate = join(folder, `lock.${processId()}.${newBase62(systemRandom, 8)}`)
  await writeFile(candidate, own, { mode: 0o600 })
  try {
    for (let attempt = 0; attempt < TAKE_MOST_ATTEMPTS; attempt++) {
      try {
        await link(candidate, path) // fails when the lock exists, whoever comes second
        return async () => {
          if ((await readFile(path, 'utf8').catch(() => '')) === own) await rm(path, { force: true })
        }
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error // fs errors carry a code
      }
      const owner = await readFile(path, 'utf8').catch(() => '')
      if (isAlive(owner)) throw new FolderLocked(`the folder ${folder} is in use by process ${owner.split(' ')[0]}`)
      await rm(path, { force: true })
    }
    throw new FolderLocked(`the lock of ${folder} could not be taken`)
  } finally {
    await rm(candidate, { force: true })
  }
}

/** `pid start`: a process id alone may have been given to another process since. */
const ownerText = (pid: number): string => `${pid} ${startOf(pid)}`

function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state = '', ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return state === 'Z' || state === 'X' ? 'ended' : (fields[18] ?? '') // a dead process that nobody has waited for yet
  } catch {
    return '' // not Linux, or no such process
  }
}

function isAlive(owner: string): boolean {
  const pid = Number(owner.split(' ')[0])
  return Number.isInteger(pid) && pid > 0 && signalProcess(pid, 0) && owner === ownerText(pid)
}
