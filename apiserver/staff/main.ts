/** Commands for staff on the machine, with the database and the sealing keys of the environment:
 *  `npm run staff -- create EMAIL --role support|finance|operations [--name NAME]` creates a member of the staff;
 *  `npm run staff -- export-backup-key ACCOUNT --by EMAIL --reason TEXT` prints the key of the account's backups;
 *  `npm run staff -- missing` lists what is missing and was not deleted;
 *  `npm run staff -- give-up KIND/NAMESPACE/NAME --by EMAIL --reason TEXT` releases the claims of one of them;
 *  `npm run staff -- resume-sweeps --by EMAIL --reason TEXT` resumes sweeps that stopped because much was missing. */
import { parseArgs } from 'node:util'
import { STAFF_ROLES } from '../../domain/permissions.ts'
import { migrate } from '../../db/kit/migrate.ts'
import { type Database, openDatabase } from '../../db/kit/open.ts'
import { type Clock, systemClock } from '../../kit/sys/clock.ts'
import { answerHelp } from '../../kit/sys/help.ts'
import { environment, printErrorLine, printLine, processArguments, setExitCode } from '../../kit/sys/process.ts'
import { type Random, systemRandom } from '../../kit/sys/random.ts'
import { settingsIn } from '../../kit/sys/settings.ts'
import { createSealing, parseSealingKeys, type Sealing } from '../../kit/sys/sealing.ts'
import { exportBackupKey } from './backup-key.ts'
import { makeStaff } from './create.ts'
import { StaffSettings } from './settings.ts'
import { describeMissing, giveUpMissing, resumeSweeps } from './missing.ts'

const USAGE = `Usage: npm run staff -- create EMAIL --role support|finance|operations [--name NAME]
       npm run staff -- export-backup-key ACCOUNT --by EMAIL --reason TEXT
       npm run staff -- missing
       npm run staff -- give-up KIND/NAMESPACE/NAME --by EMAIL --reason TEXT
       npm run staff -- resume-sweeps --by EMAIL --reason TEXT
Needs DATABASE_URL and SVCCLOUD_SEALING_KEYS.`

interface StaffParts {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly sealing: Sealing
}
interface Command {
  readonly verb: string | undefined
  readonly subject: string | undefined
  readonly values: { readonly [option in 'role' | 'name' | 'by' | 'reason']?: string | undefined }
}
/** Returns why it was not done, or nothing. */
type Work = (parts: StaffParts) => Promise<string | undefined>

/** Undefined for an unknown command. */
function workOf({ verb, subject, values }: Command): Work | undefined {
  const { by, reason } = values
  const role = STAFF_ROLES.find((known) => known === values.role)
  if (verb === 'create' && subject?.includes('@') === true && role !== undefined)
    return async (parts) => {
      const member = await makeStaff(parts, { email: subject, name: values.name ?? subject, role })
      if (member === undefined) return `${subject} is one of the staff already.`
      printLine(
        `${subject} (${role})\n  password       ${member.password}\n  authenticator  ${member.otpauthUri}\nBoth are ` +
          'shown once.',
      )
      return undefined
    }
  if (verb === 'export-backup-key' && subject !== undefined && by?.includes('@') === true && reason?.trim())
    return async (parts) => {
      const key = await exportBackupKey(parts, { accountId: subject, by, reason: reason.trim() })
      if (key === undefined) return `Account ${subject} has no key: nothing of it was ever backed up.`
      printLine(key)
      return undefined
    }
  return workOnMissing({ verb, subject, values })
}

function workOnMissing({ verb, subject, values: { by, reason } }: Command): Work | undefined {
  if (verb === 'missing')
    return async (parts) => {
      for (const line of await describeMissing(parts)) printLine(line)
      return undefined
    }
  if (by?.includes('@') !== true || !reason?.trim()) return undefined
  const decision = { by, reason: reason.trim() }
  if (verb === 'give-up' && subject !== undefined)
    return async (parts) =>
      (await giveUpMissing(parts, subject, decision)) ? undefined : `${subject} is not among what is missing.`
  if (verb === 'resume-sweeps')
    return async (parts) => {
      await resumeSweeps(parts, decision)
      return undefined
    }
  return undefined
}

async function main(): Promise<string | undefined> {
  const { positionals, values } = parseArgs({
    args: [...processArguments()],
    allowPositionals: true,
    options: {
      role: { type: 'string' },
      name: { type: 'string' },
      by: { type: 'string' },
      reason: { type: 'string' },
    },
  })
  const [verb, subject] = positionals
  const work = workOf({ verb, subject, values })
  if (work === undefined) return USAGE
  const { databaseUrl: url, sealingKeys } = settingsIn(StaffSettings, environment())
  const sealing = createSealing(parseSealingKeys(sealingKeys), systemRandom)
  if (!sealing.isAvailable) return USAGE
  const db = openDatabase({ url, connectionsMaximum: 2 })
  try {
    await migrate(db)
    return await work({ db, clock: systemClock, random: systemRandom, sealing })
  } finally {
    await db.destroy()
  }
}

answerHelp(import.meta.filename, USAGE)
const refusal = await main().catch((error: unknown) => (error instanceof Error ? error.message : String(error)))
if (refusal !== undefined) {
  printErrorLine(refusal)
  setExitCode(1)
}
