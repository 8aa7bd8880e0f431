/** Dialogs: a question with its answers; a danger, which is confirmed by typing a name. */
import './overlay.css'
import { Check, X } from 'lucide-react'
import { type FormEvent, type ReactNode, useState } from 'react'
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from 'react-aria-components'
import { defined } from '../../domain/defined.ts'
import type { Refusal } from '../api/refusal.ts'
import { t } from '../texts/index.ts'
import { Button } from './button.tsx'
import { TextField } from './field.tsx'
import { ProblemView } from './problem.tsx'

export interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ReactNode
  readonly isWide?: boolean
  /** Closes neither by a press beside it nor by Escape. */
  readonly isFirm?: boolean
  readonly role?: 'dialog' | 'alertdialog'
}

/** Open while it is there. Focus returns to where it was. */
export function Dialog({ title, onClose, children, isWide = false, isFirm = false, role }: DialogProps): ReactNode {
  return (
    <ModalOverlay
      className="shade"
      isOpen
      isDismissable={!isFirm}
      isKeyboardDismissDisabled={isFirm}
      onOpenChange={(isOpen) => {
        if (!isOpen) onClose()
      }}
    >
      <Modal className={`dialog-box ${isWide ? 'wide' : ''}`}>
        <AriaDialog className="dialog" {...defined({ role })}>
          <Heading slot="title" level={2}>
            {title}
          </Heading>
          {children}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  )
}

export interface ConfirmProps {
  readonly title: string
  readonly text?: string
  /** What is lost for good. */
  readonly goes?: readonly string[]
  readonly stays?: readonly string[]
  /** Has to be typed. */
  readonly type?: string | undefined
  readonly button: string
  readonly isDanger?: boolean
  readonly isBusy: boolean
  readonly refusal?: Refusal | undefined
  readonly children?: ReactNode
  readonly onConfirm: () => void
  readonly onClose: () => void
}

export function Confirm(props: ConfirmProps): ReactNode {
  const { title, text, goes = [], stays = [], type, button, isDanger = true } = props
  const [typed, setTyped] = useState('')
  const isTyped = type === undefined || typed === type
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    // Enter submits the form although its button is busy.
    if (isTyped && !props.isBusy) props.onConfirm()
  }
  return (
    // what is under way may answer with a secret or a refusal: the dialog stays for it
    <Dialog title={title} onClose={props.onClose} isFirm={props.isBusy} role={isDanger ? 'alertdialog' : 'dialog'}>
      <form className="form" onSubmit={submit} noValidate>
        {text === undefined ? null : <p>{text}</p>}
        <Consequences goes={goes} stays={stays} />
        {props.children}
        {type === undefined ? null : (
          <TextField label={t().ui.typeToConfirm(type)} value={typed} onChange={setTyped} autoFocus />
        )}
        {props.refusal === undefined ? null : <ProblemView refusal={props.refusal} />}
        <div className="dialog-end">
          <Button onPress={props.onClose} why={props.isBusy ? t().page.busy(button) : undefined}>
            {t().ui.cancel}
          </Button>
          <Button
            kind={isDanger ? 'danger' : 'primary'}
            type="submit"
            isBusy={props.isBusy}
            why={isTyped ? undefined : t().ui.typeFirst}
          >
            {button}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function Consequences({
  goes,
  stays,
}: {
  readonly goes: readonly string[]
  readonly stays: readonly string[]
}): ReactNode {
  if (goes.length + stays.length === 0) return null
  return (
    <ul className="goes">
      {goes.map((each) => (
        <li key={each} className="lost">
          <X aria-hidden="true" />
          <span>{each}</span>
        </li>
      ))}
      {stays.map((each) => (
        <li key={each} className="kept">
          <Check aria-hidden="true" />
          <span>{each}</span>
        </li>
      ))}
    </ul>
  )
}
