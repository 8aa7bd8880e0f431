/** What tests type into a guest: its shell, and a guest agent that is a shell script. */
import { expect } from 'vitest'
import type { GuestConsole } from '../../../../agents/node/drivers/hypervisor/hypervisor.ts'

export const PROMPT = 'root@web-1:~# '
/** Of the protocol what freezing needs. Frozen is /data, the disk. `thawed` is how many file systems it says that it
 *  thawed, and `beforeFreezing` a command of the shell. */
export const agentOf = ({ thawed = 1, beforeFreezing = ':' } = {}) => String.raw`cat > /tmp/agent <<'END'
exec 3<>"$(echo /dev/vport*p1)"
echo agent-is""-up >&2
while :; do
  # The end of the file while nobody is at the other end.
  read -r line <&3 || { sleep 0.2; continue; }
  id=$(echo "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *guest-sync-delimited*) printf '\377{"return": %s}\n' "$id" >&3 ;;
    *guest-fsfreeze-freeze*) ${beforeFreezing}; fsfreeze --freeze /data && echo '{"return": 1}' >&3 ;;
    *guest-fsfreeze-thaw*)
      fsfreeze --unfreeze /data 2> /dev/null && echo '{"return": ${thawed}}' >&3 || echo '{"return": 0}' >&3 ;;
  esac
done
END
sh /tmp/agent > /dev/null &`
export const AGENT = agentOf()

export function guestShell(wait: (isTrue: () => boolean) => Promise<void>, console: () => GuestConsole) {
  const text = () => console().tail().toString()
  const until = (isTrue: (text: string) => boolean) =>
    wait(() => isTrue(text())).catch((cause: unknown) => {
      throw new Error(`the console says ${JSON.stringify(text())}`, { cause })
    })
  return {
    text,
    until,
    /** Types it and waits for what it prints at the beginning of a line. */
    async type(lines: string, expected: RegExp): Promise<void> {
      const before = text().length
      expect(console().write(Buffer.from(`${lines}\n`))).toBe(true)
      await until((all) => expected.test(all.slice(before)))
    },
  }
}
