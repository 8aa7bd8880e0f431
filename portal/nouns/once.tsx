/** Secrets that an answer holds and that are shown once: a webhook's secret, new credentials. They are in the state of
 *  the dialog, and nowhere else. */
import { type ReactNode, useState } from 'react'
import type { OperationId } from '../api/operations.ts'
import { asRefusal, type Refusal } from '../api/refusal.ts'
import { uuid } from '../system.ts'
import { utc } from '../texts/format.ts'
import { actionText, t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Copy } from '../ui/copy.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Facts, Row } from '../ui/layout.tsx'
import { ProblemView } from '../ui/problem.tsx'
import { Note } from '../ui/state.tsx'
import { labelOf } from './fields.tsx'
import type { ActionName } from './noun.ts'
import { pathTo, send } from './reads.ts'
import { type Secrets, secretsIn, type Shown } from './secrets.ts'

export interface OnceProps {
  readonly shown: readonly Shown[]
  /** Makes another secret for an item whose answer was lost. */
  readonly rotate?: ActionName | undefined
  /** The secret can be read later, too. */
  readonly isReadable?: boolean
  readonly onClose: () => void
}

export function Once(props: OnceProps): ReactNode {
  const isAny = props.shown.some(({ secrets }) => secrets !== undefined)
  return (
    <Dialog title={isAny ? t().once.title : t().once.lostTitle} onClose={props.onClose} isWide isFirm>
      <OnceContent {...props} />
    </Dialog>
  )
}

export function OnceContent({ shown, rotate, isReadable = false, onClose }: OnceProps): ReactNode {
  const [again, setAgain] = useState<Readonly<Record<string, Secrets>>>({})
  const all = shown.map((each) => ({ ...each, secrets: again[each.id] ?? each.secrets }))
  const isAny = all.some(({ secrets }) => secrets !== undefined)
  const lost = isReadable ? t().once.readable : rotate === undefined ? t().once.makeAgain : t().once.rotate
  return (
    <>
      {isAny ? <p>{t().once.note}</p> : null}
      {all.map(({ id, name, secrets }) => (
        <section key={id}>
          {shown.length === 1 ? null : <h3 dir="auto">{name}</h3>}
          {secrets === undefined ? (
            <>
              <Note look="busy">
                {t().once.lost} {lost}
              </Note>
              {rotate === undefined || isReadable ? null : (
                <Rotate id={id} rotate={rotate} onDone={(next) => setAgain((before) => ({ ...before, [id]: next }))} />
              )}
            </>
          ) : (
            <Values secrets={secrets} />
          )}
        </section>
      ))}
      <div className="dialog-end">
        <Button kind="primary" onPress={onClose}>
          {isAny ? t().factor.kept : t().ui.close}
        </Button>
      </div>
    </>
  )
}

const Values = ({ secrets: { values, previousValidUntil } }: { readonly secrets: Secrets }): ReactNode => (
  <>
    {previousValidUntil === undefined ? null : <p>{t().once.previous(utc(previousValidUntil))}</p>}
    <Facts
      facts={Object.entries(values).map(([name, value]) => ({ name: labelOf(name), value: <Copy text={value} /> }))}
    />
  </>
)

interface RotateProps {
  readonly id: string
  readonly rotate: ActionName
  readonly onDone: (secrets: Secrets) => void
}

/** Each press is a request for itself: an answer that is lost again is made again. */
function Rotate({ id, rotate, onDone }: RotateProps): ReactNode {
  const [isBusy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()
  const run = async (operation: OperationId): Promise<void> => {
    setBusy(true)
    setRefusal(undefined)
    try {
      const secrets = secretsIn(await send(operation, { path: pathTo(operation, id), idempotencyKey: uuid() }))
      if (secrets !== undefined) onDone(secrets)
    } catch (error) {
      setRefusal(asRefusal(operation, error))
    }
    setBusy(false)
  }
  return (
    <>
      {refusal === undefined ? null : <ProblemView refusal={refusal} />}
      <Row>
        <Button isBusy={isBusy} onPress={() => void run(rotate)}>
          {actionText(rotate)}
        </Button>
      </Row>
    </>
  )
}
